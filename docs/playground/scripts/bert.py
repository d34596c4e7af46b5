"""Two layers of BERT-base, for any batch up to 32 and any length up to 512."""

from ait_mlir.frontend import IntVar, Tensor
from examples.models.bert import BertConfig, BertEncoder

batch, seq = IntVar([1, 32], name="batch"), IntVar([1, 512], name="seq")
config = BertConfig(num_hidden_layers=2)
encoder = BertEncoder(config)
encoder.name_parameter_tensor()
x = Tensor(shape=[batch, seq, config.hidden_size], dtype=config.dtype, name="x", is_input=True)
y = encoder(x).mark_as_output("y")
