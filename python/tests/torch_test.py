"""Beside Debian's python3-torch in one process, in either order of import; modules and tensors."""

import unittest

from common import TINY, aha, has, np, pixels, run_python, skip

if not has("torch"):
    skip("python3-torch is not installed")
import torch

# A network whose answers both libraries compute, in either order; what torch says is the same as without aha.
BOTH = """
import sys
{imports}
import numpy as np
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                          torch.nn.Linear(16 * 30 * 30, 5)).eval()
x = np.random.default_rng(0).random((2, 3, 32, 32), dtype=np.float32)
threads = torch.get_num_threads()
before = net(torch.from_numpy(x)).detach().numpy()
m = aha.load(net, size=32)
own = aha.load(sys.argv[1])
a = aha.Explainer("smoothgrad:samples=4", m)(x)
b = aha.Explainer("chefer", own)(x)
after = net(torch.from_numpy(x)).detach().numpy()
assert np.array_equal(before, after), "torch computes otherwise than before"
assert np.allclose(m.logits(x), before, atol=1e-5)
assert torch.get_num_threads() == threads and torch.is_grad_enabled()
loss = net(torch.from_numpy(x).requires_grad_()).sum()
loss.backward()
assert np.isfinite(a).all() and np.isfinite(b).all() and a.std() > 0 and b.std() > 0
print(repr(float(a.sum())), repr(float(b.sum())))
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 8, 5, stride=2)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


class Torch(unittest.TestCase):
    def test_either_order_of_import_gives_the_same_maps(self):
        outputs = [
            run_python(BOTH.format(imports=imports), TINY).stdout
            for imports in ("import torch\nimport aha", "import aha\nimport torch")
        ]
        numbers = [[float(word) for word in out.split()] for out in outputs]
        np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-4)

    def test_the_module_does_not_load_torch_for_those_who_do_not(self):
        run_python(
            "import aha, sys; aha.methods(); aha.load(sys.argv[1]); assert 'torch' not in sys.modules", TINY
        )

    def test_gradients_of_a_module_are_autograds(self):
        net, x = Net().eval(), pixels(3)
        mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
        m = aha.load(net, size=32, mean=mean, std=std)
        t = torch.from_numpy(x).requires_grad_()
        normal = (t - torch.tensor(mean).view(1, 3, 1, 1)) / torch.tensor(std).view(1, 3, 1, 1)
        net(normal)[:, 2].sum().backward()
        ours = aha.Explainer("gradient", m)(x, 2)
        theirs = t.grad.abs().amax(1).numpy()  # the largest of the channels
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.max())

    def test_captum_scripts_get_tensors_for_tensors(self):
        x = torch.from_numpy(pixels(2))
        e = aha.Explainer("gradient", aha.load(Net().eval(), size=32))
        a = e.attribute(x.clone().requires_grad_(), target=torch.tensor([1, 2]))
        self.assertIsInstance(a, torch.Tensor)
        self.assertEqual(tuple(a.shape), (2, 1, 32, 32))
        np.testing.assert_array_equal(a[:, 0].numpy(), e(x.numpy(), [1, 2]))
        np.testing.assert_array_equal(e(x, [1, 2]), e(x.numpy(), [1, 2]))

    def test_tensors_of_any_strides_go_through_dlpack(self):
        e = aha.Explainer("chefer", aha.load(TINY))
        x = torch.from_numpy(pixels(2))
        a = e(x)
        np.testing.assert_array_equal(e(x.contiguous(memory_format=torch.channels_last)), a)
        np.testing.assert_array_equal(e(x.double()), a)
        np.testing.assert_array_equal(e([x[0], x[1]]), a)
        r = aha.evaluate(
            e.model,
            x,
            torch.tensor([0, 1]),
            {"torch": torch.from_numpy(np.asarray(a))},
            metrics=["ins-del"],
            references="black",
        )
        self.assertEqual(r["ins-del"]["torch"].images, 2)

    def test_explain_func_explains_the_module_that_it_is_handed(self):
        explain = aha.explain_func("gradient")
        a = explain(model=Net().eval(), inputs=pixels(2), targets=np.array([0, 1]))
        changed = Net().eval()
        with torch.no_grad():
            changed.conv.weight.neg_()
        b = explain(model=changed, inputs=pixels(2), targets=np.array([0, 1]))
        self.assertEqual(a.shape, (2, 1, 32, 32))
        self.assertFalse(np.array_equal(a, b))

    def test_a_module_in_training_mode_is_warned_about_and_one_that_fails_says_why(self):
        with self.assertWarnsRegex(UserWarning, "training mode"):
            aha.load(Net().train(), size=32)
        with self.assertRaisesRegex(RuntimeError, "mat1 and mat2"):
            aha.load(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(7, 2)).eval(), size=32)

    def test_a_module_is_evaluated_with_the_logits_of_torch(self):
        net, x = Net().eval(), pixels(9)
        m = aha.load(net, size=32)
        np.testing.assert_allclose(
            m.logits(x), net(torch.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6
        )
        r = aha.evaluate(m, x, None, {"gradient": aha.Explainer("gradient", m)}, metrics=["ins-del"])
        self.assertEqual(r["ins-del"]["gradient"].images, 9)


if __name__ == "__main__":
    unittest.main()
