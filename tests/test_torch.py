import copy
import io
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from cases import cases, spelled_out
from hypothesis import given

from promissing.checks import DTYPES, LAYER_CHECKS, LayerUnderTest

torch = pytest.importorskip("torch")

from promissing.torch import NanDropout, NanLinear  # noqa: E402

COMPENSATIONS = ("none", "shared", "feature")


def build(kernel, bias, weight, dtype="float64", compensation=None, groups=None, shares=None):
    if compensation is None:
        compensation = "none" if weight is None else ("shared", "feature")[np.ndim(weight) - 1]
    layer = NanLinear(
        *kernel.shape,
        compensation=compensation,
        groups=groups,
        shares=shares,
        dtype=getattr(torch, dtype),
    )
    state = {"weight": kernel.T, "bias": bias, "compensation_weight": weight}
    layer.load_state_dict({k: torch.tensor(v) for k, v in state.items() if v is not None})
    return layer


def forward(x, kernel, bias, weight, dtype):
    layer = build(kernel, bias, weight, dtype)
    # Without a copy where there need not be one, so that a layer that writes to it is found out.
    return layer(torch.from_numpy(x).to(getattr(torch, dtype))).detach().double().numpy()


def gradient(x, kernel, bias, weight, dtype):
    layer = build(kernel, bias, weight, dtype)
    x = torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True)
    layer(x).sum().backward()
    weights = (x, layer.weight, layer.bias, layer.compensation_weight)
    return [None if w is None else w.grad.double().numpy() for w in weights]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compensation", COMPENSATIONS)
@pytest.mark.parametrize("check", LAYER_CHECKS)
def test_contract(check, compensation, dtype):
    check(LayerUnderTest(forward, gradient, compensation, dtype))


@given(cases())
def test_agrees_with_numpy(case):
    layer = build(*case.weights, "float32", case.compensation, case.groups, case.shares)
    layer.eval()  # Some cases have no known value, which is warned about in training.
    out = layer(torch.tensor(case.x, dtype=torch.float32))
    error = np.abs(out.detach().numpy() - spelled_out(case)).max(initial=0)
    assert error <= 1e-6 * case.magnitude
    out.sum().backward()
    assert all(torch.isfinite(w.grad).all() for w in layer.parameters())


@pytest.fixture(params=COMPENSATIONS)
def layer(request):
    torch.manual_seed(0)
    return NanLinear(5, 3, compensation=request.param, groups=[0, 0, 1, 2, 2], dtype=torch.float64)


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    x[torch.rand(7, 5, generator=generator) < 0.3] = torch.nan
    return x


def test_same_seed_same_weights_as_linear():
    torch.manual_seed(3)
    linear = torch.nn.Linear(4, 2)
    torch.manual_seed(3)
    ours = NanLinear(4, 2, compensation="shared")
    assert torch.equal(ours.weight, linear.weight)
    assert torch.equal(ours.bias, linear.bias)


def test_shared_compensation_starts_like_one_more_weight_and_per_feature_at_zero():
    shared = NanLinear(8, 5000, compensation="shared").compensation_weight
    assert shared.abs().max() <= 1 / 3
    assert shared.std().item() == pytest.approx(1 / 3 / 3**0.5, rel=0.05)
    assert not NanLinear(8, 2, compensation="feature").compensation_weight.any()


def test_state_dict_is_weight_bias_and_compensation_weight(layer):
    names = ["weight", "bias"] + ["compensation_weight"] * (layer.compensation != "none")
    assert list(layer.state_dict()) == names


def test_state_dict_of_linear_loads_and_the_compensation_keeps_its_start(layer, x):
    linear = torch.nn.Linear(5, 3, dtype=torch.float64)
    before = copy.deepcopy(layer.compensation_weight)
    layer.load_state_dict(linear.state_dict())
    assert torch.equal(layer.weight, linear.weight)
    if before is not None:
        assert torch.equal(layer.compensation_weight, before)


def test_a_linear_inside_a_larger_state_dict_loads():
    plain = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    ours = torch.nn.Sequential(
        NanLinear(5, 3, compensation="shared"), torch.nn.ReLU(), torch.nn.Linear(3, 1)
    )
    ours.load_state_dict(plain.state_dict())
    complete = torch.randn(4, 5)
    torch.testing.assert_close(ours(complete), plain(complete))


def test_a_state_dict_without_weight_is_still_refused(layer):
    with pytest.raises(RuntimeError, match="Missing key"):
        layer.load_state_dict({})


@pytest.mark.parametrize("compensation", COMPENSATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_from_linear_starts_the_compensation_at_zero(compensation, bias, x):
    linear = torch.nn.Linear(5, 3, bias=bias, dtype=torch.float64)
    ours = NanLinear.from_linear(linear, compensation=compensation)
    complete = torch.nan_to_num(x)
    torch.testing.assert_close(ours(complete), linear(complete))
    assert not ours(torch.full_like(x[:1], torch.nan)).abs().gt(1e-12).any()


def test_without_bias_a_gap_is_only_pruned(x):
    ours = NanLinear(5, 3, bias=False, dtype=torch.float64)
    torch.testing.assert_close(ours(x), torch.nan_to_num(x) @ ours.weight.T)


def test_save_and_load_through_a_file(layer, x):
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = NanLinear(5, 3, compensation=layer.compensation, groups=[0, 0, 1, 2, 2]).double()
    other.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(other(x), layer(x))


def test_neutralizers(layer, x):
    u = torch.tensor(layer.neutralizers())
    filled = torch.where(x.isnan()[:, None, :], u, x[:, None, :])
    literal = (filled * layer.weight).sum(-1) + layer.bias
    torch.testing.assert_close(layer(x), literal)


def test_gradcheck(layer):
    x = torch.tensor([[0.3, -1.2, 0.7, 2.0, 0.1]], dtype=torch.float64, requires_grad=True)
    gaps = torch.tensor([[False, False, True, True, False]])

    def call(x, *weights):
        names = [name for name, _ in layer.named_parameters()]
        masked = x.masked_fill(gaps, torch.nan)
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), masked)

    assert torch.autograd.gradcheck(call, (x, *layer.parameters()))
    assert torch.autograd.gradgradcheck(call, (x, *layer.parameters()))


def test_func_vmap_and_grad(layer, x):
    parameters = dict(layer.named_parameters())

    def loss(parameters, row):
        return torch.func.functional_call(layer, parameters, row).square().sum()

    per_row = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    whole = torch.func.grad(lambda p: torch.func.functional_call(layer, p, x).square().sum())
    for name, value in whole(parameters).items():
        assert torch.isfinite(per_row[name]).all()
        torch.testing.assert_close(per_row[name].sum(0), value)


# torch's own code generator still uses what torch deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_compile_without_graph_breaks(layer, x):
    # The graph of each; machine code, which takes most of the time, of the one that has most in it.
    backend = "inductor" if layer.compensation == "feature" else "eager"
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    out = compiled(x)
    torch.testing.assert_close(out, layer(x))
    out.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())


def test_export_with_a_dynamic_batch(layer, x):
    batch = torch.export.Dim("batch")
    program = torch.export.export(layer, (x,), dynamic_shapes={"input": {0: batch}})
    for rows in (x, x[:3], torch.cat([x, x])):
        torch.testing.assert_close(program.module()(rows), layer(rows))


LAYOUTS = {"plain": {}, "grouped": {"groups": [0, 0, 1, 2, 2], "shares": [0.5, 0.3, 0.2]}}


@pytest.mark.parametrize(
    ("compensation", "layout", "dynamo"),
    [
        *((name, layout, False) for name in COMPENSATIONS for layout in LAYOUTS),
        # Each takes seconds: every kind of extra column and of appended row once.
        *(("none", "plain", True), ("shared", "grouped", True), ("feature", "grouped", True)),
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch, onnxscript and onnx deprecate what they use.
def test_onnx_file_runs_in_onnxruntime(compensation, layout, dynamo, x):
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    onnxruntime = pytest.importorskip("onnxruntime")
    layer = NanLinear(5, 3, compensation=compensation, **LAYOUTS[layout]).eval()
    if compensation == "feature":
        torch.nn.init.normal_(layer.compensation_weight)
    x, file = x.float(), io.BytesIO()
    if dynamo:
        batch = ({0: torch.export.Dim("batch")},)
        torch.onnx.export(layer, (x,), file, dynamo=True, dynamic_shapes=batch, verbose=False)
    else:
        batch = {"input": {0: "batch"}}
        names = {"input_names": ["input"], "dynamic_axes": batch}
        torch.onnx.export(layer, (x,), file, dynamo=False, **names)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    for rows in (x, torch.cat([x[:2], torch.full((1, 5), torch.nan)])):
        (out,) = session.run(None, {name: rows.numpy()})
        np.testing.assert_allclose(out, layer(rows).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keywords", [{}, {"bias": False}, {"shares": [0.5, 0.3, 0.2]}])
def test_fx_traces_the_formula(layer, x, keywords):
    layer = NanLinear(
        5, 3, compensation=layer.compensation, groups=[0, 0, 1, 2, 2], **keywords
    ).double()
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(layer, torch.nn.ReLU()))
    torch.testing.assert_close(traced(x), layer(x).relu())


def test_runs_on_the_meta_device(layer, x):
    meta = copy.deepcopy(layer).to("meta")
    out = meta(x.to("meta").requires_grad_())
    assert out.device.type == "meta"
    assert out.shape == (7, 3)
    out.sum().backward()
    # The parameters of another device or dtype put in place of the layer's own.
    on_meta = {name: value.to("meta") for name, value in layer.state_dict().items()}
    assert torch.func.functional_call(layer, on_meta, x.to("meta")).device.type == "meta"
    out = torch.func.functional_call(meta, layer.state_dict(), x)
    torch.testing.assert_close(out, layer(x))


ALL_MISSING = "Every value of a training batch.* is NaN.*BatchNorm1d.*StandardScaler"


def test_a_normalising_layer_in_front_is_warned_about_once(x):
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(5), NanLinear(5, 3)).double()
    x[0] = torch.nan  # A gap in every column.
    with pytest.warns(UserWarning, match=ALL_MISSING):
        model(x)
    model(x)  # A second warning would be an error.


def test_an_all_missing_batch_is_warned_about_after_others_too(x):
    layer = NanLinear(5, 3).double()
    layer(x)
    with pytest.warns(UserWarning, match=ALL_MISSING):
        layer(torch.full_like(x, torch.nan).requires_grad_())


@pytest.mark.parametrize(
    "call",
    [
        lambda layer, x: layer.eval()(x),
        lambda layer, x: layer(x[:1]),
        lambda layer, x: layer(x[0]),
        lambda layer, x: layer(x[:0]),
        lambda layer, x: layer(torch.cat([x, torch.ones_like(x)])),
        lambda layer, x: layer.to("meta")(x.to("meta")),
        lambda layer, x: torch.func.vmap(layer)(x[:, None].expand(-1, 2, -1)),
        lambda layer, x: torch.jit.trace(layer, x, check_trace=False)(x),
        lambda layer, x: torch.fx.symbolic_trace(layer)(x),
        lambda layer, x: torch.export.export(layer, (x,)).module()(x),
        lambda layer, x: torch.compile(layer, fullgraph=True, backend="eager")(x),
    ],
)
@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
def test_no_warning_in_evaluation_of_single_rows_or_in_traces(call):
    call(NanLinear(5, 3), torch.full((4, 5), torch.nan))


def test_sparse_input_is_refused():
    with pytest.raises(ValueError, match="expected a dense input, but got torch.sparse_coo"):
        NanLinear(3, 2)(torch.eye(3).to_sparse())


def test_autocast():
    layer = NanLinear(64, 8, compensation="feature", groups=[g // 2 for g in range(64)])
    x = torch.randn(16, 64)
    x[torch.rand(16, 64) < 0.5] = torch.nan
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), layer(x), rtol=0.05, atol=0.05)
    out.float().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())


def test_moves_with_its_dtype(layer, x):
    assert layer.float()(x.float()).dtype == torch.float32
    assert layer.bfloat16()(x.bfloat16()).dtype == torch.bfloat16


def test_device_and_dtype_keywords():
    layer = NanLinear(3, 2, device="meta", dtype=torch.float16, shares=[0.5, 0.25, 0.25])
    assert layer.weight.device.type == layer.column_shares.device.type == "meta"
    assert layer.weight.dtype == layer.column_shares.dtype == torch.float16


def test_deepcopy_and_pickle(layer, x):
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(other(x), layer(x), rtol=0, atol=0)


GROUPED = {"groups": [0, 0, 1, 2, 2], "shares": [0.5, 0.3, 0.2], "compensation": "feature"}


def test_the_layout_survives_whatever_is_done_to_the_module(x):
    layer = NanLinear(5, 3, **GROUPED, dtype=torch.float64)
    state = layer.state_dict()
    empty = NanLinear(5, 3, **GROUPED, device="meta", dtype=torch.float64).to_empty(device="cpu")
    empty.load_state_dict(state)
    assigned = NanLinear(5, 3, **GROUPED, device="meta", dtype=torch.float64)
    assigned.load_state_dict(state, assign=True)
    skipped = torch.nn.utils.skip_init(NanLinear, 5, 3, **GROUPED, dtype=torch.float64)
    skipped.load_state_dict(state)
    rounded = NanLinear(5, 3, **GROUPED).half().double()
    rounded.load_state_dict(state)
    for other in (empty, assigned, skipped, rounded):
        torch.testing.assert_close(other(x), layer(x), rtol=0, atol=1e-15)


def test_a_parametrized_layer_reloads_its_own_state_dict():
    layer = NanLinear(5, 3, compensation="feature")
    torch.nn.utils.parametrizations.spectral_norm(layer, "compensation_weight")
    layer.load_state_dict(layer.state_dict())
    normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(5, 3))
    ours = torch.nn.utils.parametrizations.weight_norm(NanLinear(5, 3, compensation="shared"))
    ours.load_state_dict(normed.state_dict())
    complete = torch.randn(4, 5)
    torch.testing.assert_close(ours(complete), normed(complete))


def test_from_linear_keeps_what_is_frozen():
    linear = torch.nn.Linear(5, 3).requires_grad_(False).eval()
    ours = NanLinear.from_linear(linear, compensation="shared")
    assert not ours.weight.requires_grad
    assert not ours.bias.requires_grad
    assert ours.compensation_weight.requires_grad
    assert not ours.training


def test_integers_are_refused():
    with pytest.raises(ValueError, match="floating point numbers, but got torch.int64"):
        NanLinear(2, 2)(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="floating point numbers, but got torch.int64"):
        NanDropout(0.5)(torch.ones(2, 2, dtype=torch.int64))


def test_numpy_integers_and_arrays_as_arguments():
    groups = np.array([0, 0, 1])
    layer = NanLinear(np.int64(3), np.int32(2), groups=groups, shares=np.array([0.5, 0.5]))
    assert layer(torch.ones(1, 3)).shape == (1, 2)
    assert NanDropout(0.5, groups=groups)(torch.ones(1, 3)).shape == (1, 3)


def test_repr(layer):
    text = repr(layer)
    assert text.startswith("NanLinear(in_features=5, out_features=3, bias=True, compensation=")
    assert "n_features=3" in text


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((0, 3), {}, "in_features must be a positive integer, but got 0"),
        ((3, 2.0), {}, "out_features must be a positive integer, but got 2.0"),
        ((3, True), {}, "out_features must be a positive integer, but got True"),
        ((3, 2), {"compensation": "all"}, '"none", "shared" or "feature".*\'all\''),
        ((3, 2), {"groups": [0, 1]}, "one feature for each of the 3 columns"),
        ((3, 2), {"shares": [1.0, 1.0, 1.0]}, "must sum to 1"),
    ],
)
def test_bad_arguments(arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        NanLinear(*arguments, **keywords)


def test_an_input_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"expected an input with 3 features.*\(2, 4\)"):
        NanLinear(3, 2)(torch.zeros(2, 4))


def test_dropout_makes_unknowns_while_training_only(x):
    torch.manual_seed(0)
    drop = NanDropout(0.5)
    many = torch.ones(200, 100)
    assert drop(many).isnan().float().mean().item() == pytest.approx(0.5, abs=0.02)
    assert drop(many).nan_to_num(nan=1.0).eq(1).all()  # What is left is not rescaled.
    torch.testing.assert_close(drop.eval()(x), x, equal_nan=True)
    assert not many.isnan().any()


def test_dropout_of_groups_loses_their_columns_together():
    torch.manual_seed(0)
    gone = NanDropout(0.5, groups=[0, 1, 0, 2])(torch.ones(500, 4)).isnan()
    assert torch.equal(gone[:, 0], gone[:, 2])
    assert not torch.equal(gone[:, 0], gone[:, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NanDropout(1.5), "between 0 and 1, but got 1.5"),
        (lambda: NanDropout(0.5, groups=[0, 2]), "no column belongs to feature 1"),
        (lambda: NanDropout(0.5, groups=[0, 1])(torch.ones(2, 3)), "expected an input with 2"),
    ],
)
def test_dropout_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


DDP = """
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from promissing.torch import NanLinear

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
torch.manual_seed(0)
layer = NanLinear(4, 2, compensation="feature", shares=[0.4, 0.3, 0.2, 0.1])
x = torch.randn(8, 4)
x[torch.rand(8, 4) < 0.4] = torch.nan
layer(x).square().mean().backward()
whole = [p.grad.clone() for p in layer.parameters()]
layer.zero_grad()
ddp = DistributedDataParallel(layer)
ddp(x[rank * 4 : rank * 4 + 4]).square().mean().backward()
for expected, p in zip(whole, layer.parameters()):
    torch.testing.assert_close(p.grad, expected)
dist.destroy_process_group()
print("agreed")
"""


def test_two_processes_with_ddp(tmp_path):
    """Each process sees half of the rows; the averaged gradient is that of all of them."""
    command = [sys.executable, "-c", textwrap.dedent(DDP)]
    workers = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "rendezvous")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert out.strip() == "agreed", err
