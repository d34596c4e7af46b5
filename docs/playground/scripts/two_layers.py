"""Two linear layers with a gelu between them, for any batch from 1 to 64."""

from ait_mlir.frontend import IntVar, Tensor, nn

batch = IntVar([1, 64], name="batch")
x = Tensor(shape=[batch, 768], dtype="float16", name="x", is_input=True)
model = nn.Sequential(nn.Linear(768, 3072, specialization="gelu"), nn.Linear(3072, 768))
model.name_parameter_tensor()
y = model(x).mark_as_output("y")
