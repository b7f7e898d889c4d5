// The encoder of a Chessformer with GAB, from the bits of its input to the tokens after the last
// layer. A block computes one board, whose activations stay in shared memory. The weights come
// from the L2 cache, packed in the order in which lanes read them.
//
// Include sizes.h, a definition of `sizes`, and warp.cuh first.

// Strides of rows in shared memory, in halves. With these strides, the eight rows and four columns
// that a warp reads at once are in different banks.
DEVICE int token_stride() { return sizes.width + 8; }

DEVICE int wide_stride() {
  const int joint = 3 * sizes.width;
  return (joint > sizes.feed_forward ? joint : sizes.feed_forward) + 8;
}

constexpr int kBiasStride = kSquares + 8;

// Returns the number of features that the embedding multiplies.
DEVICE int padded_features() { return (sizes.features + 15) / 16 * 16; }

// The parts of shared memory, all aligned to sixteen bytes.
struct Shared {
  Word* words;
  // [64, token_stride].
  Half* tokens;
  // Queries, keys and values, [64, 3 · width]. Attention overwrites the queries with its output.
  // Also the hidden layer of the feed-forward block.
  Half* wide;
  // Attention biases of the heads of a pass, [heads, 64, kBiasStride].
  Half* biases;
  // GAB's features [64, compress], summary, and vectors of the heads.
  float* squares;
  float* summary;
  float* vectors;
};

DEVICE int words_room() {
  const int room = sizes.words > padded_features() ? sizes.words : padded_features();
  return (room + 1) / 2 * 2;
}

// Returns the number of bytes of shared memory.
DEVICE int shared_bytes() {
  return 8 * words_room() + 2 * kSquares * (token_stride() + wide_stride()) +
         2 * sizes.heads_per_pass * kSquares * kBiasStride +
         4 * (kSquares * sizes.compress + sizes.hidden + sizes.heads * sizes.generator);
}

DEVICE Shared parts_of(unsigned char* memory) {
  Shared shared;
  shared.words = reinterpret_cast<Word*>(memory);
  shared.tokens = reinterpret_cast<Half*>(shared.words + words_room());
  shared.wide = shared.tokens + kSquares * token_stride();
  shared.biases = shared.wide + kSquares * wide_stride();
  shared.squares =
      reinterpret_cast<float*>(shared.biases + sizes.heads_per_pass * kSquares * kBiasStride);
  shared.summary = shared.squares + kSquares * sizes.compress;
  shared.vectors = shared.summary + sizes.hidden;
  return shared;
}

DEVICE Pair& pair_at(Half* halves, int index) { return *reinterpret_cast<Pair*>(halves + index); }

// Takes the next parameters. Matrices and vectors are concatenated in the order of their use.
struct Parameters {
  const Half* matrices;
  const float* vectors;

  DEVICE const Half* matrix(int count) {
    const Half* taken = matrices;
    matrices += count;
    return taken;
  }

  DEVICE const float* vector(int count) {
    const float* taken = vectors;
    vectors += count;
    return taken;
  }
};

DEVICE float mish(float x) {
  // tanh(ln(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), which is 1 in f32 above 20.
  const float e = exponential(x < 20.0f ? x : 20.0f);
  const float n = e * (e + 2.0f);
  return x * (n / (n + 2.0f));
}

DEVICE float swish(float x) { return x / (1.0f + exponential(-x)); }

// Multiplies rows [64, inner] with packed weights [outer, inner]. A warp computes RowTiles · 16
// rows and ColumnTiles · 8 columns at a time. `load` returns a pair of elements of a row, and
// `store` receives a pair of sums.
template <int RowTiles, int ColumnTiles, typename Load, typename Store>
DEVICE void multiply(int outer, int inner, const Half* weights, Load load, Store store) {
  constexpr int kGroups = 4 / RowTiles;
  const Word* packed = reinterpret_cast<const Word*>(weights);
  EACH_WARP(warp) {
    const int first = warp % kGroups * RowTiles;
    for (int tile = warp / kGroups * ColumnTiles; tile < outer / 8;
         tile += kWarps / kGroups * ColumnTiles) {
      REGISTERS(float, sums, [RowTiles][ColumnTiles][4]);
      EACH_LANE(lane) {
        UNROLL for (int row = 0; row < RowTiles; ++row) {
          UNROLL for (int column = 0; column < ColumnTiles; ++column) {
            UNROLL for (int part = 0; part < 4; ++part) {
              AT(sums[row][column][part], lane) = 0.0f;
            }
          }
        }
      }
      UNROLL for (int step = 0; step < inner / 16; ++step) {
        REGISTERS(Pair, left, [RowTiles][4]);
        REGISTERS(Pair, right, [ColumnTiles][2]);
        EACH_LANE(lane) {
          UNROLL for (int row = 0; row < RowTiles; ++row) {
            UNROLL for (int part = 0; part < 4; ++part) {
              const int square = 16 * (first + row) + lane / 4 + part % 2 * 8;
              const int input = 16 * step + lane % 4 * 2 + part / 2 * 8;
              AT(left[row][part], lane) = load(square, input);
            }
          }
          UNROLL for (int column = 0; column < ColumnTiles; ++column) {
            const Word word = packed[((tile + column) * (inner / 16) + step) * 32 + lane];
            AT(right[column][0], lane) = static_cast<Pair>(word);
            AT(right[column][1], lane) = static_cast<Pair>(word >> 32);
          }
        }
        UNROLL for (int row = 0; row < RowTiles; ++row) {
          UNROLL for (int column = 0; column < ColumnTiles; ++column) {
            multiply_add(sums[row][column], left[row], right[column]);
          }
        }
      }
      EACH_LANE(lane) {
        UNROLL for (int row = 0; row < RowTiles; ++row) {
          UNROLL for (int column = 0; column < ColumnTiles; ++column) {
            UNROLL for (int half = 0; half < 2; ++half) {
              const int square = 16 * (first + row) + lane / 4 + half * 8;
              store(square, 8 * (tile + column) + lane % 4 * 2,
                    AT(sums[row][column][2 * half], lane),
                    AT(sums[row][column][2 * half + 1], lane));
            }
          }
        }
      }
    }
  }
}

// Multiplies rows in shared memory, and passes the sums with their biases to `store`.
template <typename Store>
DEVICE void dense(Half* rows, int stride, int outer, int inner, Parameters& parameters,
                  Store store) {
  const Half* weights = parameters.matrix(outer * inner);
  const float* bias = parameters.vector(outer);
  multiply<2, 4>(
      outer, inner, weights,
      [=](int square, int input) { return pair_at(rows, square * stride + input); },
      [=](int square, int output, float first, float second) {
        store(square, output, first + bias[output], second + bias[output + 1]);
      });
}

// Normalises tokens.
DEVICE void norm(const Shared& shared, Parameters& parameters) {
  const float* weight = parameters.vector(sizes.width);
  const float* bias = parameters.vector(sizes.width);
  EACH_WARP(warp) {
    for (int square = warp; square < kSquares; square += kWarps) {
      Half* row = shared.tokens + square * token_stride();
      REGISTERS(float, sum);
      REGISTERS(float, squared);
      EACH_LANE(lane) {
        AT(sum, lane) = AT(squared, lane) = 0.0f;
        for (int column = lane; column < sizes.width; column += 32) {
          const float x = to_float(row[column]);
          AT(sum, lane) += x;
          AT(squared, lane) += x * x;
        }
      }
      combine<32>(sum, Sum());
      combine<32>(squared, Sum());
      EACH_LANE(lane) {
        const float mean = sizes.is_centred ? AT(sum, lane) / sizes.width : 0.0f;
        const float variance = AT(squared, lane) / sizes.width - mean * mean;
        const float scale = inverse_root(Most()(variance, 0.0f) + sizes.epsilon);
        for (int column = lane; column < sizes.width; column += 32) {
          const float x = (to_float(row[column]) - mean) * scale;
          row[column] = to_half(x * weight[column] + bias[column]);
        }
      }
    }
  }
}

// Applies a dense layer, SiLU and a centred norm to one vector.
DEVICE void dense_vector(const float* in, float* out, int outer, int inner,
                         Parameters& parameters) {
  const Half* weights = parameters.matrix(outer * inner);
  const float* bias = parameters.vector(outer);
  const float* scale = parameters.vector(outer);
  const float* shift = parameters.vector(outer);
  EACH_WARP(warp) {
    // Four lanes compute an output.
    for (int first = 8 * warp; first < outer; first += 8 * kWarps) {
      REGISTERS(float, sum);
      EACH_LANE(lane) {
        const int output = first + lane / 4;
        AT(sum, lane) = lane % 4 == 0 ? bias[output] : 0.0f;
        for (int at = lane % 4 * 8; at < inner; at += 32) {
          const Pairs row = *reinterpret_cast<const Pairs*>(weights + output * inner + at);
          const Floats* inputs = reinterpret_cast<const Floats*>(in + at);
          UNROLL for (int part = 0; part < 2; ++part) {
            const Floats some = inputs[part];
            UNROLL for (int pair = 0; pair < 2; ++pair) {
              AT(sum, lane) += low(row.pairs[2 * part + pair]) * some.values[2 * pair] +
                               high(row.pairs[2 * part + pair]) * some.values[2 * pair + 1];
            }
          }
        }
      }
      combine<4>(sum, Sum());
      EACH_LANE(lane) {
        if (lane % 4 == 0) {
          out[first + lane / 4] = swish(AT(sum, lane));
        }
      }
    }
  }
  EACH_WARP(warp) {
    if (warp == 0) {
      REGISTERS(float, sum);
      REGISTERS(float, squared);
      EACH_LANE(lane) {
        AT(sum, lane) = AT(squared, lane) = 0.0f;
        for (int output = lane; output < outer; output += 32) {
          AT(sum, lane) += out[output];
          AT(squared, lane) += out[output] * out[output];
        }
      }
      combine<32>(sum, Sum());
      combine<32>(squared, Sum());
      EACH_LANE(lane) {
        const float mean = AT(sum, lane) / outer;
        const float variance = AT(squared, lane) / outer - mean * mean;
        const float factor = inverse_root(Most()(variance, 0.0f) + sizes.gab_epsilon);
        for (int output = lane; output < outer; output += 32) {
          out[output] = (out[output] - mean) * factor * scale[output] + shift[output];
        }
      }
    }
  }
}

// Writes the vectors from which GAB generates the biases of each head.
DEVICE void summarise(const Shared& shared, Parameters& parameters) {
  const int stride = token_stride();
  const Half* weights = parameters.matrix(sizes.compress * sizes.width);
  const float* bias = parameters.vector(sizes.compress);
  multiply<1, 1>(
      sizes.compress, sizes.width, weights,
      [=](int square, int input) { return pair_at(shared.tokens, square * stride + input); },
      [=](int square, int output, float first, float second) {
        float* found = shared.squares + square * sizes.compress + output;
        found[0] = first + bias[output];
        found[1] = second + bias[output + 1];
      });
  dense_vector(shared.squares, shared.summary, sizes.hidden, kSquares * sizes.compress,
               parameters);
  dense_vector(shared.summary, shared.vectors, sizes.heads * sizes.generator, sizes.hidden,
               parameters);
}

// Generates the attention biases of the heads of a pass, with the attacks. A warp multiplies the
// generator's rows for 4 · 16 pairs of squares with the vectors of eight heads. `generator` is
// packed in the order in which lanes read the rows, and `attacks` are each head's two weights.
DEVICE void generate(const Shared& shared, int first_head, const Half* generator,
                     const float* attacks) {
  constexpr int kTiles = 4;
  const int steps = sizes.generator / 16;
  EACH_WARP(warp) {
    for (int group = 0; group < sizes.heads_per_pass; group += 8) {
      REGISTERS(Pair, vectors, [EXACT(steps, 16)][2]);
      REGISTERS(float, worth, [2][2]);
      EACH_LANE(lane) {
        const int head = group + lane / 4;
        UNROLL for (int step = 0; step < steps; ++step) {
          UNROLL for (int part = 0; part < 2; ++part) {
            const float* vector = shared.vectors + (first_head + head) * sizes.generator +
                                  16 * step + lane % 4 * 2 + part * 8;
            AT(vectors[step][part], lane) =
                head < sizes.heads_per_pass ? to_pair(vector[0], vector[1]) : 0;
          }
        }
        UNROLL for (int part = 0; part < 2; ++part) {
          const int own = group + lane % 4 * 2 + part;
          UNROLL for (int kind = 0; kind < 2; ++kind) {
            AT(worth[part][kind], lane) = sizes.has_attacks && own < sizes.heads_per_pass
                                              ? attacks[2 * (first_head + own) + kind]
                                              : 0.0f;
          }
        }
      }
      for (int first = kTiles * warp; first < kSquares * kSquares / 16; first += kTiles * kWarps) {
        REGISTERS(float, sums, [kTiles][4]);
        EACH_LANE(lane) {
          UNROLL for (int tile = 0; tile < kTiles; ++tile) {
            UNROLL for (int part = 0; part < 4; ++part) {
              AT(sums[tile][part], lane) = 0.0f;
            }
          }
        }
        UNROLL for (int step = 0; step < steps; ++step) {
          REGISTERS(Pair, rows, [kTiles][4]);
          EACH_LANE(lane) {
            UNROLL for (int tile = 0; tile < kTiles; ++tile) {
              const Pairs packed = reinterpret_cast<const Pairs*>(
                  generator)[((first + tile) * steps + step) * 32 + lane];
              UNROLL for (int part = 0; part < 4; ++part) {
                AT(rows[tile][part], lane) = packed.pairs[part];
              }
            }
          }
          UNROLL for (int tile = 0; tile < kTiles; ++tile) {
            multiply_add(sums[tile], rows[tile], vectors[step]);
          }
        }
        EACH_LANE(lane) {
          UNROLL for (int tile = 0; tile < kTiles; ++tile) {
            const int from = (first + tile) / 4;
            UNROLL for (int half = 0; half < 2; ++half) {
              const int to = (first + tile) % 4 * 16 + lane / 4 + half * 8;
              bool attacked = false;
              bool attacker = false;
              if (sizes.has_attacks) {
                const Word* words = shared.words + sizes.features + from;
                attacked = words[0] >> to & 1;
                attacker = words[kSquares] >> to & 1;
              }
              UNROLL for (int part = 0; part < 2; ++part) {
                const int head = group + lane % 4 * 2 + part;
                const float bias = AT(sums[tile][2 * half + part], lane) +
                                   (attacked ? AT(worth[part][0], lane) : 0.0f) +
                                   (attacker ? AT(worth[part][1], lane) : 0.0f);
                if (head < sizes.heads_per_pass) {
                  shared.biases[(head * kSquares + from) * kBiasStride + to] = to_half(bias);
                }
              }
            }
          }
        }
      }
    }
  }
}

// Attends with the heads of a pass. A warp computes 16 queries of a head at a time.
DEVICE void attend(const Shared& shared, int first_head) {
  const int stride = wide_stride();
  const int head_width = sizes.width / sizes.heads;
  const float scale = inverse_root(static_cast<float>(head_width));
  EACH_WARP(warp) {
    for (int unit = warp; unit < 4 * sizes.heads_per_pass; unit += kWarps) {
      const int head = unit / 4;
      Half* query = shared.wide + unit % 4 * 16 * stride + (first_head + head) * head_width;
      Half* key = shared.wide + sizes.width + (first_head + head) * head_width;
      Half* value = key + sizes.width;
      Half* biases = shared.biases + (head * kSquares + unit % 4 * 16) * kBiasStride;
      REGISTERS(float, logits, [8][4]);
      EACH_LANE(lane) {
        UNROLL for (int tile = 0; tile < 8; ++tile) {
          UNROLL for (int part = 0; part < 4; ++part) {
            AT(logits[tile][part], lane) = 0.0f;
          }
        }
      }
      UNROLL for (int step = 0; step < head_width / 16; ++step) {
        REGISTERS(Pair, left, [4]);
        EACH_LANE(lane) {
          UNROLL for (int part = 0; part < 4; ++part) {
            AT(left[part], lane) = pair_at(query, (lane / 4 + part % 2 * 8) * stride + 16 * step +
                                                      lane % 4 * 2 + part / 2 * 8);
          }
        }
        UNROLL for (int tile = 0; tile < 8; ++tile) {
          REGISTERS(Pair, right, [2]);
          EACH_LANE(lane) {
            UNROLL for (int part = 0; part < 2; ++part) {
              AT(right[part], lane) = pair_at(
                  key, (8 * tile + lane / 4) * stride + 16 * step + lane % 4 * 2 + part * 8);
            }
          }
          multiply_add(logits[tile], left, right);
        }
      }
      // Each lane holds elements of two rows.
      REGISTERS(float, most, [2]);
      REGISTERS(float, total, [2]);
      EACH_LANE(lane) {
        UNROLL for (int half = 0; half < 2; ++half) {
          AT(most[half], lane) = -1e30f;
          UNROLL for (int tile = 0; tile < 8; ++tile) {
            const Pair bias =
                pair_at(biases, (lane / 4 + half * 8) * kBiasStride + 8 * tile + lane % 4 * 2);
            float& first = AT(logits[tile][2 * half], lane);
            float& second = AT(logits[tile][2 * half + 1], lane);
            first = first * scale + low(bias);
            second = second * scale + high(bias);
            AT(most[half], lane) = Most()(AT(most[half], lane), Most()(first, second));
          }
        }
      }
      combine<4>(most[0], Most());
      combine<4>(most[1], Most());
      EACH_LANE(lane) {
        UNROLL for (int half = 0; half < 2; ++half) {
          AT(total[half], lane) = 0.0f;
          UNROLL for (int tile = 0; tile < 8; ++tile) {
            UNROLL for (int part = 2 * half; part < 2 * half + 2; ++part) {
              float& logit = AT(logits[tile][part], lane);
              logit = exponential(logit - AT(most[half], lane));
              AT(total[half], lane) += logit;
            }
          }
        }
      }
      combine<4>(total[0], Sum());
      combine<4>(total[1], Sum());
      REGISTERS(float, found, [EXACT(head_width / 8, 16)][4]);
      EACH_LANE(lane) {
        UNROLL for (int tile = 0; tile < head_width / 8; ++tile) {
          UNROLL for (int part = 0; part < 4; ++part) {
            AT(found[tile][part], lane) = 0.0f;
          }
        }
      }
      UNROLL for (int step = 0; step < 4; ++step) {
        // The sums of two tiles of keys are laid out like the rows of a product.
        REGISTERS(Pair, left, [4]);
        EACH_LANE(lane) {
          UNROLL for (int part = 0; part < 4; ++part) {
            const int tile = 2 * step + part / 2;
            AT(left[part], lane) = to_pair(AT(logits[tile][part % 2 * 2], lane),
                                           AT(logits[tile][part % 2 * 2 + 1], lane));
          }
        }
        UNROLL for (int tile = 0; tile < head_width / 8; ++tile) {
          REGISTERS(Pair, right, [2]);
          EACH_LANE(lane) {
            UNROLL for (int part = 0; part < 2; ++part) {
              const Half* column = value + 8 * tile + lane / 4;
              const int square = 16 * step + lane % 4 * 2 + part * 8;
              AT(right[part], lane) = column[square * stride] |
                                      static_cast<Pair>(column[(square + 1) * stride]) << 16;
            }
          }
          multiply_add(found[tile], left, right);
        }
      }
      EACH_LANE(lane) {
        UNROLL for (int half = 0; half < 2; ++half) {
          const float share = 1.0f / AT(total[half], lane);
          UNROLL for (int tile = 0; tile < head_width / 8; ++tile) {
            pair_at(query, (lane / 4 + half * 8) * stride + 8 * tile + lane % 4 * 2) =
                to_pair(AT(found[tile][2 * half], lane) * share,
                        AT(found[tile][2 * half + 1], lane) * share);
          }
        }
      }
    }
  }
}

// Encodes one board: its words to tokens [64, width].
DEVICE void encode_board(unsigned char* memory, const Word* words, Parameters parameters,
                         Pair* out) {
  const Shared shared = parts_of(memory);
  const int stride = token_stride();
  const int wide = wide_stride();
  EACH_WARP(warp) {
    EACH_LANE(lane) {
      for (int word = 32 * warp + lane; word < words_room(); word += 32 * kWarps) {
        shared.words[word] = word < sizes.words ? words[word] : 0;
      }
    }
  }
  const Half* embedding = parameters.matrix(sizes.width * padded_features());
  const Half* generator = parameters.matrix(sizes.generator * kSquares * kSquares);
  const float* factor = parameters.vector(kSquares * sizes.width);
  const float* offset = parameters.vector(kSquares * sizes.width);
  const float* attacks = parameters.vector(2 * sizes.heads);
  multiply<2, 4>(
      sizes.width, padded_features(), embedding,
      [=](int square, int input) {
        constexpr Pair kOne = 0x3c00;
        const Pair first = static_cast<Pair>(shared.words[input] >> square & 1);
        const Pair second = static_cast<Pair>(shared.words[input + 1] >> square & 1);
        return first * kOne | second * (kOne << 16);
      },
      [=](int square, int output, float first, float second) {
        const int at = square * sizes.width + output;
        pair_at(shared.tokens, square * stride + output) = to_pair(
            first * factor[at] + offset[at], second * factor[at + 1] + offset[at + 1]);
      });
  const auto add = [=](int square, int output, float first, float second) {
    Pair& token = pair_at(shared.tokens, square * stride + output);
    token = to_pair(low(token) + first, high(token) + second);
  };
  for (int layer = 0; layer < sizes.layers; ++layer) {
    summarise(shared, parameters);
    dense(shared.tokens, stride, 3 * sizes.width, sizes.width, parameters,
          [=](int square, int output, float first, float second) {
            pair_at(shared.wide, square * wide + output) = to_pair(first, second);
          });
    for (int head = 0; head < sizes.heads; head += sizes.heads_per_pass) {
      generate(shared, head, generator, attacks);
      attend(shared, head);
    }
    dense(shared.wide, wide, sizes.width, sizes.width, parameters, add);
    norm(shared, parameters);
    dense(shared.tokens, stride, sizes.feed_forward, sizes.width, parameters,
          [=](int square, int output, float first, float second) {
            pair_at(shared.wide, square * wide + output) = to_pair(mish(first), mish(second));
          });
    dense(shared.wide, wide, sizes.width, sizes.feed_forward, parameters, add);
    norm(shared, parameters);
  }
  EACH_WARP(warp) {
    EACH_LANE(lane) {
      const int pairs = sizes.width / 2;
      for (int at = 32 * warp + lane; at < kSquares * pairs; at += 32 * kWarps) {
        out[at] = pair_at(shared.tokens, at / pairs * stride + at % pairs * 2);
      }
    }
  }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(32 * kWarps, TESSERA_BLOCKS)
    encode(const Word* words, const Half* matrices, const float* vectors, Pair* out) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int board = blockIdx.x;
  encode_board(memory, words + static_cast<long long>(board) * sizes.words,
               {matrices, vectors},
               out + static_cast<long long>(board) * (kSquares * sizes.width / 2));
}
#endif
