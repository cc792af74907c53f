# %% [markdown]
# # Strings from noise
#
# A sound is a list of numbers: where the air is, 22,050 times a second. Here are two ways to
# compute one, and a tune.

# %%
import jax
import jax.numpy as jnp
from weft import plot

RATE = 22050

# %% [markdown]
# ## A bell is a sum
#
# A body that is struck rings at several frequencies, each of which dies away by itself:
#
# $$s(t) = \sum_k a_k\, e^{-t/\tau_k} \sin(2\pi f_k t).$$
#
# The frequencies of a bell are no multiples of one; these ratios are from Jean-Claude Risset's
# [catalogue](https://archive.org/details/Risset_1969_Catalogue) of 1969. `vmap` computes the
# partials, a sum mixes them.

# %%
RATIOS = jnp.array([0.56, 0.92, 1.19, 1.70, 2.00, 2.74, 3.00, 3.76, 4.07])
LOUDNESS = jnp.array([1.0, 1.0, 1.67, 1.0, 1.8, 2.67, 1.46, 1.33, 1.33])
LENGTHS = jnp.array([1.0, 0.9, 0.65, 0.55, 0.325, 0.35, 0.25, 0.2, 0.15])


@jax.jit
def bell(frequency):
    t = jnp.arange(3 * RATE) / RATE
    partial = lambda ratio, loud, tau: (
        loud * jnp.exp(-t / tau) * jnp.sin(2 * jnp.pi * frequency * ratio * t)
    )
    return jax.vmap(partial)(RATIOS, LOUDNESS, LENGTHS).sum(0) / 12


plot.audio(bell(330.0), RATE)

# %% [markdown]
# ## A string is a delay
#
# Fill a delay line with noise, and let it go round: each sample is the average of the two that
# came out one round ago,
#
# $$y_n = \tfrac12\,(y_{n-N} + y_{n-N-1}), \qquad f = \frac{r}{N + \frac12},$$
#
# with $r$ samples a second. High tones die first, as on a real string, and what is left sings at
# the frequency $f$ ([Karplus and Strong](https://www.jstor.org/stable/3680062), 1983). One round
# is one step of `scan`: $N$ samples at once, so that a second takes a few hundred steps and not
# 22,050.


# %%
def pluck(key, period, rounds, damping=0.996):
    def turn(line, _):
        before = jnp.concatenate([line[-1:], line[:-1]])  # what came out one sample earlier
        return damping * 0.5 * (line + before), line

    noise = jax.random.uniform(key, (period,), minval=-1.0, maxval=1.0)
    _, rounds_of_it = jax.lax.scan(turn, noise - noise.mean(), None, length=rounds)
    return rounds_of_it.reshape(-1)


PERIOD = 100
string = jax.jit(pluck, static_argnums=(1, 2))(jax.random.key(0), PERIOD, 330)
plot.audio(string, RATE, normalize=True)

# %% [markdown]
# ## See it
#
# A short Fourier transform, moved along the sound, shows which frequencies there are at each
# time: noise at first, then the string's own tone and its multiples, the high ones fading.

# %%
WINDOW = 1024
starts = jnp.arange(0, len(string) - WINDOW, 128)
frames = jax.vmap(lambda at: jax.lax.dynamic_slice(string, (at,), (WINDOW,)))(starts)
loud = jnp.abs(jnp.fft.rfft(frames * jnp.hanning(WINDOW), axis=1)).T
decibels = 20 * jnp.log10(loud[:280] + 1e-3)
figure = plot.figure(title="a plucked string", height=300, xlabel="seconds", ylabel="hertz")
extent = (0.0, len(string) / RATE, 0.0, 280 * RATE / WINDOW)
figure.image(decibels, origin="lower", extent=extent, cmap="magma", vmin=-40, colorbar=False)
cover = (decibels[::-1] + 40) / (decibels.max() + 40)
figure

# %% [markdown]
# Is the tone right? The last half second, transformed as a whole, has its peak at the frequency
# that the formula says, up to half the distance of two frequencies.

# %%
tail = string[-RATE // 2 :]
spectrum = jnp.abs(jnp.fft.rfft(tail * jnp.hanning(len(tail))))
measured = float(spectrum.argmax() * RATE / len(tail))
expected = RATE / PERIOD
print(f"measured {measured:.1f} Hz, expected {expected:.1f} Hz")

# %% [markdown]
# ## A tune
#
# The beginning of Bach's Prelude in C (BWV 846, 1722): notes in half tones from the middle C,
# each plucked with noise of its own and added to the tune where it begins.

# %%
BARS = [(0, 4, 7, 12, 16), (0, 2, 9, 14, 17), (-1, 2, 7, 14, 17), (0, 4, 7, 12, 16)]
notes = [note for bar in BARS for _ in range(2) for note in (*bar, *bar[2:])]
note_length, ring = int(0.21 * RATE), int(1.2 * RATE)


def play(notes):
    tune = jnp.zeros(len(notes) * note_length + ring)
    made = {}  # each tone is computed once
    for i, note in enumerate(notes):
        if note not in made:
            period = round(RATE / (261.63 * 2 ** (note / 12)))
            made[note] = pluck(jax.random.key(note + 20), period, ring // period + 1)[:ring]
        tune = tune.at[i * note_length : i * note_length + ring].add(0.25 * made[note])
    return tune


tune = play(notes)
seconds = len(tune) / RATE
plot.audio(tune, RATE, normalize=True)

# %% [markdown]
# ## Try next
#
# - Change a sign at random in the average, and the string becomes a drum.
# - Real periods are no whole numbers, so high notes are a little out of tune here. How much, in
#   hundredths of a half tone? An average with unequal weights, $(1-c)\,y_{n-N} + c\,y_{n-N-1}$,
#   mends it.
# - `plot.audio` takes two columns: play the odd notes on the left, the even ones on the right.
