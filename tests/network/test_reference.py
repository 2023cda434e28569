"""The reference is PyTorch's LSTM, member by member: outputs, states and gradients."""

import torch
from torch import Tensor, nn

from evband.network.kernels import reference
from evband.network.lstm import LayerWeights, State

MEMBERS, STEPS, BATCH, FEATURES, HIDDEN, LAYERS = 3, 11, 5, 4, 12, 2


def networks() -> list[nn.LSTM]:
    """One a member, with PyTorch's second bias, which adds nothing, at zero."""
    torch.manual_seed(0)
    nets = [nn.LSTM(FEATURES, HIDDEN, LAYERS) for _ in range(MEMBERS)]
    for net in nets:
        for layer in range(LAYERS):
            nn.init.zeros_(getattr(net, f"bias_hh_l{layer}"))
    return nets


def stacked(nets: list[nn.LSTM], layer: int) -> LayerWeights:
    names = (f"weight_ih_l{layer}", f"weight_hh_l{layer}", f"bias_ih_l{layer}")
    return LayerWeights(*(torch.stack([getattr(net, n).detach() for net in nets]).requires_grad_() for n in names))


def agree(ours: Tensor, theirs: Tensor, largest: float) -> bool:
    return bool((ours - theirs).abs().max() <= 1e-5 * largest)


def test_each_member_is_the_lstm_of_pytorch():
    nets = networks()
    layers = [stacked(nets, layer) for layer in range(LAYERS)]
    x = torch.randn(1, STEPS, BATCH, FEATURES)
    state = State(torch.randn(LAYERS, MEMBERS, BATCH, HIDDEN), torch.randn(LAYERS, MEMBERS, BATCH, HIDDEN))
    weight = torch.randn(MEMBERS, STEPS, BATCH, HIDDEN)

    y, end = reference.run(x, layers, state, None)
    ((y * weight).sum() + end.c.square().sum()).backward()

    for m, net in enumerate(nets):
        out, (h, c) = net(x[0], (state.h[:, m].contiguous(), state.c[:, m].contiguous()))
        ((out * weight[m]).sum() + c.square().sum()).backward()
        assert agree(y[m], out, 1.0)
        assert agree(end.h[:, m], h, 1.0)
        assert agree(end.c[:, m], c, float(c.detach().abs().max()))
        largest = max(float(p.grad.abs().max()) for p in net.parameters() if p.grad is not None)
        for layer, ours in enumerate(layers):
            assert agree(ours.w_ih.grad[m], getattr(net, f"weight_ih_l{layer}").grad, largest)
            assert agree(ours.w_hh.grad[m], getattr(net, f"weight_hh_l{layer}").grad, largest)
            assert agree(ours.bias.grad[m], getattr(net, f"bias_ih_l{layer}").grad, largest)


def test_state_carries_over_a_cut():
    layers = [stacked(networks(), layer) for layer in range(LAYERS)]
    x = torch.randn(1, STEPS, BATCH, FEATURES)
    whole, end = reference.run(x, layers, None, None)
    first, between = reference.run(x[:, :4], layers, None, None)
    second, last = reference.run(x[:, 4:], layers, between, None)
    assert torch.allclose(torch.cat([first, second], dim=1), whole, atol=1e-6)
    assert torch.allclose(last.c, end.c, atol=1e-6)
