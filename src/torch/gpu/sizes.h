// The sizes of an encoder, shared by Rust (src/torch/gpu.rs), C++ and CUDA.

struct Sizes {
  // Number of words per board: the features, followed by the attacks, if any.
  int words;
  int features;
  int layers;
  int width;
  int heads;
  int feed_forward;
  // GAB's features per square, width of the board summary, and width of a head's vector.
  int compress;
  int hidden;
  int generator;
  // Number of heads whose attention biases are in shared memory at the same time.
  int heads_per_pass;
  // Whether the words contain attacks.
  int has_attacks;
  // Whether the norms subtract the mean.
  int is_centred;
  float epsilon;
  float gab_epsilon;
};
