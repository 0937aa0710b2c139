"""JAX: compiled functions and a training step."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # beside other programs of the GPU

from hawser_cases import case, main, need  # noqa: E402

np, jax = need("numpy", "jax")
jnp = jax.numpy


def numbers(*arrays):
    """The sum and the largest magnitude of each array."""
    result = []
    for array in arrays:
        host = np.asarray(array)
        result += [float(host.sum(dtype=np.float64)), float(np.abs(host).max())]
    return result


def seeded(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


@case()
def on_the_gpu():
    return [device.platform for device in jax.devices()]


@case()
def elementwise_and_reductions():
    return numbers(*jax.jit(lambda x: (jnp.sin(jnp.exp(x)) * x, x.sum(0), jnp.cumsum(x, 1), jnp.sort(x)))(seeded(100, 300)))


@case(tolerance=1e-4)
def products():
    return numbers(jax.jit(lambda a, b: a @ b)(seeded(256, 256), seeded(256, 256, seed=1)),
                   jax.vmap(lambda a, b: a @ b)(seeded(5, 30, 20), seeded(5, 20, 10, seed=2)))


@case(tolerance=1e-4)
def scan():
    w = seeded(16, 16) / 8
    return numbers(jax.lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c.sum()), jnp.zeros(16), seeded(50, 16, seed=1))[0])


@case(tolerance=1e-4)
def convolution():
    # XLA chooses an algorithm by its time: without a precision, some round to TF32.
    return numbers(jax.lax.conv(seeded(2, 3, 32, 32), seeded(8, 3, 3, 3, seed=1), (1, 1), "SAME",
                                precision=jax.lax.Precision.HIGHEST))


@case(tolerance=1e-4)
def linear_algebra():
    a = seeded(32, 32)
    a = a @ a.T + 32 * jnp.eye(32)
    return numbers(jnp.linalg.cholesky(a), jnp.linalg.solve(a, seeded(32, seed=1)), jnp.linalg.eigvalsh(a))


@case(steps=50, tolerance=1e-3)
def training(steps, timer):
    parameters = {"first": seeded(64, 256) / 8, "second": seeded(256, 10, seed=1) / 16}
    x, y = seeded(128, 64, seed=2), jnp.arange(128) % 10

    def loss(p):
        out = jax.nn.gelu(x @ p["first"]) @ p["second"]
        return -jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], 1).mean()

    @jax.jit
    def step(p):
        value, gradient = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), value

    parameters, first = step(parameters)
    first.block_until_ready()
    timer.start()
    for _ in range(steps):
        parameters, value = step(parameters)
    value.block_until_ready()
    timer.stop()
    return [float(first), float(value)]


if __name__ == "__main__":
    main("jax", jax.__version__)
