class Network(Module):
  __parameters__ = []
  __buffers__ = ["shifts", "policy_gather", "displacements", ]
  embedding : __torch__.embedding
  encoder : __torch__.encoder
  policy : __torch__.policy
  value : __torch__.value
  moves_left : __torch__.moves_left
  shifts : Tensor
  policy_gather : Tensor
  displacements : Tensor
  metadata : str
  def forward(self: __torch__.Network,
    rows: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    moves_left = self.moves_left
    plies = moves_left.plies
    bias = plies.bias
    moves_left0 = self.moves_left
    plies0 = moves_left0.plies
    weight = plies0.weight
    moves_left1 = self.moves_left
    hidden = moves_left1.hidden
    bias0 = hidden.bias
    moves_left2 = self.moves_left
    hidden0 = moves_left2.hidden
    weight0 = hidden0.weight
    value = self.value
    short_term = value.short_term
    error = short_term.error
    bias1 = error.bias
    value0 = self.value
    short_term0 = value0.short_term
    error0 = short_term0.error
    weight1 = error0.weight
    value1 = self.value
    short_term1 = value1.short_term
    scalar = short_term1.scalar
    bias2 = scalar.bias
    value2 = self.value
    short_term2 = value2.short_term
    scalar0 = short_term2.scalar
    weight2 = scalar0.weight
    value3 = self.value
    short_term3 = value3.short_term
    hidden1 = short_term3.hidden
    bias3 = hidden1.bias
    value4 = self.value
    short_term4 = value4.short_term
    hidden2 = short_term4.hidden
    weight3 = hidden2.weight
    value5 = self.value
    q = value5.q
    error1 = q.error
    bias4 = error1.bias
    value6 = self.value
    q0 = value6.q
    error2 = q0.error
    weight4 = error2.weight
    value7 = self.value
    q1 = value7.q
    scalar1 = q1.scalar
    bias5 = scalar1.bias
    value8 = self.value
    q2 = value8.q
    scalar2 = q2.scalar
    weight5 = scalar2.weight
    value9 = self.value
    q3 = value9.q
    hidden3 = q3.hidden
    bias6 = hidden3.bias
    value10 = self.value
    q4 = value10.q
    hidden4 = q4.hidden
    weight6 = hidden4.weight
    value11 = self.value
    result = value11.result
    wdl = result.wdl
    bias7 = wdl.bias
    value12 = self.value
    result0 = value12.result
    wdl0 = result0.wdl
    weight7 = wdl0.weight
    value13 = self.value
    result1 = value13.result
    hidden5 = result1.hidden
    bias8 = hidden5.bias
    value14 = self.value
    result2 = value14.result
    hidden6 = result2.hidden
    weight8 = hidden6.weight
    policy_gather = self.policy_gather
    policy = self.policy
    vanilla = policy.vanilla
    promotion = vanilla.promotion
    weight9 = promotion.weight
    policy0 = self.policy
    vanilla0 = policy0.vanilla
    key = vanilla0.key
    bias9 = key.bias
    policy1 = self.policy
    vanilla1 = policy1.vanilla
    key0 = vanilla1.key
    weight10 = key0.weight
    policy2 = self.policy
    vanilla2 = policy2.vanilla
    query = vanilla2.query
    bias10 = query.bias
    policy3 = self.policy
    vanilla3 = policy3.vanilla
    query0 = vanilla3.query
    weight11 = query0.weight
    moves_left3 = self.moves_left
    squares = moves_left3.squares
    bias11 = squares.bias
    moves_left4 = self.moves_left
    squares0 = moves_left4.squares
    weight12 = squares0.weight
    value15 = self.value
    short_term5 = value15.short_term
    squares1 = short_term5.squares
    bias12 = squares1.bias
    value16 = self.value
    short_term6 = value16.short_term
    squares2 = short_term6.squares
    weight13 = squares2.weight
    value17 = self.value
    q5 = value17.q
    squares3 = q5.squares
    bias13 = squares3.bias
    value18 = self.value
    q6 = value18.q
    squares4 = q6.squares
    weight14 = squares4.weight
    value19 = self.value
    result3 = value19.result
    squares5 = result3.squares
    bias14 = squares5.bias
    value20 = self.value
    result4 = value20.result
    squares6 = result4.squares
    weight15 = squares6.weight
    policy4 = self.policy
    embedding = policy4.embedding
    bias15 = embedding.bias
    policy5 = self.policy
    embedding0 = policy5.embedding
    weight16 = embedding0.weight
    encoder = self.encoder
    _0 = getattr(encoder, "0")
    feed_forward = _0.feed_forward
    norm = feed_forward.norm
    bias16 = norm.bias
    encoder0 = self.encoder
    _00 = getattr(encoder0, "0")
    feed_forward0 = _00.feed_forward
    norm0 = feed_forward0.norm
    weight17 = norm0.weight
    encoder1 = self.encoder
    _01 = getattr(encoder1, "0")
    feed_forward1 = _01.feed_forward
    narrow = feed_forward1.narrow
    weight18 = narrow.weight
    encoder2 = self.encoder
    _02 = getattr(encoder2, "0")
    feed_forward2 = _02.feed_forward
    narrow0 = feed_forward2.narrow
    bias17 = narrow0.bias
    encoder3 = self.encoder
    _03 = getattr(encoder3, "0")
    feed_forward3 = _03.feed_forward
    widen = feed_forward3.widen
    bias18 = widen.bias
    encoder4 = self.encoder
    _04 = getattr(encoder4, "0")
    feed_forward4 = _04.feed_forward
    widen0 = feed_forward4.widen
    weight19 = widen0.weight
    encoder5 = self.encoder
    _05 = getattr(encoder5, "0")
    attention = _05.attention
    norm1 = attention.norm
    bias19 = norm1.bias
    encoder6 = self.encoder
    _06 = getattr(encoder6, "0")
    attention0 = _06.attention
    norm2 = attention0.norm
    weight20 = norm2.weight
    encoder7 = self.encoder
    _07 = getattr(encoder7, "0")
    attention1 = _07.attention
    output = attention1.output
    weight21 = output.weight
    encoder8 = self.encoder
    _08 = getattr(encoder8, "0")
    attention2 = _08.attention
    output0 = attention2.output
    bias20 = output0.bias
    encoder9 = self.encoder
    _09 = getattr(encoder9, "0")
    attention3 = _09.attention
    value21 = attention3.value
    weight22 = value21.weight
    encoder10 = self.encoder
    _010 = getattr(encoder10, "0")
    attention4 = _010.attention
    query_key = attention4.query_key
    weight23 = query_key.weight
    encoder11 = self.encoder
    _011 = getattr(encoder11, "0")
    attention5 = _011.attention
    position = attention5.position
    offset = position.offset
    embedding1 = self.embedding
    add = embedding1.add
    embedding2 = self.embedding
    multiply = embedding2.multiply
    embedding3 = self.embedding
    project = embedding3.project
    bias21 = project.bias
    embedding4 = self.embedding
    project0 = embedding4.project
    weight24 = project0.weight
    shifts = self.shifts
    _12 = torch.unsqueeze(torch.narrow(rows, 1, 0, 104), 2)
    _1 = torch.to(shifts, dtype=4, layout=0, device=torch.device("cpu"))
    _2 = torch.bitwise_right_shift(_12, torch.mul(_1, 8))
    _3 = torch.to(torch.bitwise_and(_2, 255), dtype=0, layout=0, device=torch.device("cpu"))
    _4 = torch.bitwise_right_shift(torch.unsqueeze(_3, 3), shifts)
    _5 = torch.view(torch.bitwise_and(_4, 1), [-1, 104, 64])
    _6 = torch.transpose(torch.type_as(_5, weight24), 1, 2)
    _7 = torch.ne(torch.narrow(rows, 1, 104, 4), 0)
    _8 = torch.type_as(_7, weight24)
    _9 = torch.type_as(torch.narrow(rows, 1, 108, 1), weight24)
    _10 = torch.type_as(torch.narrow(rows, 1, 109, 1), weight24)
    _11 = [_8, _9, torch.mul(_10, 0.01), torch.zeros_like(_9), torch.ones_like(_9)]
    _13 = torch.unsqueeze(torch.cat(_11, 1), 1)
    _14 = [_6, torch.expand(_13, [-1, 64, -1])]
    _15 = torch.linear(torch.cat(_14, 2), weight24, bias21)
    _16 = torch.add(torch.mul(_15, multiply), add)
    _17 = torch.add(_16, offset)
    _18 = torch.view(torch.linear(_17, weight23), [-1, 64, 2, 1, 4])
    _19 = torch.unbind(torch.permute(_18, [2, 0, 3, 1, 4]))
    _20, _21, = _19
    _22 = torch.view(torch.linear(_17, weight22), [-1, 64, 1, 4])
    _23 = torch.scaled_dot_product_attention(_20, _21, torch.transpose(_22, 1, 2))
    _24 = torch.reshape(torch.transpose(_23, 1, 2), [-1, 64, 4])
    _25 = torch.mul(bias20, 0.8408964152537145)
    _26 = torch.mul(weight21, 0.8408964152537145)
    _27 = torch.add(_16, torch.linear(_24, _26, _25))
    _28 = torch.layer_norm(_27, [4], weight20, bias19, 9.9999999999999995e-07)
    _29 = torch.mish(torch.linear(_28, weight19, bias18))
    _30 = torch.mul(bias17, 0.8408964152537145)
    _31 = torch.mul(weight18, 0.8408964152537145)
    _32 = torch.add(_28, torch.linear(_29, _31, _30))
    _33 = torch.layer_norm(_32, [4], weight17, bias16, 9.9999999999999995e-07)
    _34 = torch.mish(torch.linear(_33, weight16, bias15))
    _35 = torch.mish(torch.linear(_33, weight15, bias14))
    _36 = torch.mish(torch.linear(_33, weight14, bias13))
    _37 = torch.mish(torch.linear(_33, weight13, bias12))
    _38 = torch.mish(torch.linear(_33, weight12, bias11))
    _39 = torch.linear(_34, weight11, bias10)
    _40 = torch.linear(_34, weight10, bias9)
    _41 = torch.bmm(_39, torch.transpose(_40, 1, 2))
    _42 = torch.mul(_41, 0.5)
    _43 = torch.linear(torch.narrow(_40, 1, 56, 8), weight9)
    _44 = torch.unsqueeze(_43, 1)
    _45 = torch.narrow(torch.narrow(_42, 1, 48, 8), 2, 56, 8)
    _46 = torch.add(torch.unsqueeze(_45, 3), _44)
    _47 = [torch.flatten(_42, 1, 2), torch.flatten(_46, 1, 3)]
    _48 = torch.index_select(torch.cat(_47, 1), 1, policy_gather)
    _49 = torch.to(_48, dtype=6, layout=0, device=torch.device("cpu"))
    _50 = torch.linear(torch.flatten(_35, 1, 2), weight8, bias8)
    _51 = torch.linear(torch.mish(_50), weight7, bias7)
    _52 = torch.to(_51, dtype=6, layout=0, device=torch.device("cpu"))
    _53 = torch.linear(torch.flatten(_36, 1, 2), weight6, bias6)
    _54 = torch.mish(_53)
    _55 = torch.squeeze(torch.linear(_54, weight5, bias5), 1)
    _56 = torch.to(_55, dtype=6, layout=0, device=torch.device("cpu"))
    _57 = torch.tanh(_56)
    _58 = torch.squeeze(torch.linear(_54, weight4, bias4), 1)
    _59 = torch.to(_58, dtype=6, layout=0, device=torch.device("cpu"))
    _60 = torch.sigmoid(_59)
    _61 = torch.linear(torch.flatten(_37, 1, 2), weight3, bias3)
    _62 = torch.mish(_61)
    _63 = torch.squeeze(torch.linear(_62, weight2, bias2), 1)
    _64 = torch.to(_63, dtype=6, layout=0, device=torch.device("cpu"))
    _65 = torch.tanh(_64)
    _66 = torch.squeeze(torch.linear(_62, weight1, bias1), 1)
    _67 = torch.to(_66, dtype=6, layout=0, device=torch.device("cpu"))
    _68 = torch.sigmoid(_67)
    _69 = torch.linear(torch.flatten(_38, 1, 2), weight0, bias0)
    _70 = torch.linear(torch.mish(_69), weight, bias)
    _71 = torch.to(torch.squeeze(_70, 1), dtype=6, layout=0, device=torch.device("cpu"))
    _72 = (_49, _52, torch.mul(torch.softplus(_71), 20.), _57, _60, _65, _68)
    return _72
  def meta(self: __torch__.Network) -> str:
    return self.metadata
class embedding(Module):
  __parameters__ = ["multiply", "add", ]
  __buffers__ = []
  project : __torch__.embedding_project
  multiply : Tensor
  add : Tensor
class embedding_project(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class encoder(Module):
  __parameters__ = []
  __buffers__ = []
  __annotations__ = []
  __annotations__["0"] = __torch__.encoder_0
class encoder_0(Module):
  __parameters__ = []
  __buffers__ = []
  attention : __torch__.encoder_0_attention
  feed_forward : __torch__.encoder_0_feed_forward
class encoder_0_attention(Module):
  __parameters__ = []
  __buffers__ = []
  query_key : __torch__.encoder_0_attention_query_key
  value : __torch__.encoder_0_attention_value
  output : __torch__.encoder_0_attention_output
  norm : __torch__.encoder_0_attention_norm
  position : __torch__.encoder_0_attention_position
class encoder_0_attention_query_key(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
class encoder_0_attention_value(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
class encoder_0_attention_output(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class encoder_0_attention_norm(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class encoder_0_attention_position(Module):
  __parameters__ = ["offset", ]
  __buffers__ = []
  offset : Tensor
class encoder_0_feed_forward(Module):
  __parameters__ = []
  __buffers__ = []
  widen : __torch__.encoder_0_feed_forward_widen
  narrow : __torch__.encoder_0_feed_forward_narrow
  norm : __torch__.encoder_0_feed_forward_norm
class encoder_0_feed_forward_widen(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class encoder_0_feed_forward_narrow(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class encoder_0_feed_forward_norm(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class policy(Module):
  __parameters__ = []
  __buffers__ = []
  embedding : __torch__.policy_embedding
  vanilla : __torch__.policy_vanilla
class policy_embedding(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class policy_vanilla(Module):
  __parameters__ = []
  __buffers__ = []
  query : __torch__.policy_vanilla_query
  key : __torch__.policy_vanilla_key
  promotion : __torch__.policy_vanilla_promotion
class policy_vanilla_query(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class policy_vanilla_key(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class policy_vanilla_promotion(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
class value(Module):
  __parameters__ = []
  __buffers__ = []
  result : __torch__.value_result
  q : __torch__.value_q
  short_term : __torch__.value_short_term
class value_result(Module):
  __parameters__ = []
  __buffers__ = []
  squares : __torch__.value_result_squares
  hidden : __torch__.value_result_hidden
  wdl : __torch__.value_result_wdl
class value_result_squares(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_result_hidden(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_result_wdl(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_q(Module):
  __parameters__ = []
  __buffers__ = []
  squares : __torch__.value_q_squares
  hidden : __torch__.value_q_hidden
  scalar : __torch__.value_q_scalar
  categorical : __torch__.value_q_categorical
  error : __torch__.value_q_error
class value_q_squares(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_q_hidden(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_q_scalar(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_q_categorical(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_q_error(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_short_term(Module):
  __parameters__ = []
  __buffers__ = []
  squares : __torch__.value_short_term_squares
  hidden : __torch__.value_short_term_hidden
  scalar : __torch__.value_short_term_scalar
  categorical : __torch__.value_short_term_categorical
  error : __torch__.value_short_term_error
class value_short_term_squares(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_short_term_hidden(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_short_term_scalar(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_short_term_categorical(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class value_short_term_error(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class moves_left(Module):
  __parameters__ = []
  __buffers__ = []
  squares : __torch__.moves_left_squares
  hidden : __torch__.moves_left_hidden
  plies : __torch__.moves_left_plies
class moves_left_squares(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class moves_left_hidden(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
class moves_left_plies(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
