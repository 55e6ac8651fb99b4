import numpy as np


def program(signal, cutoff):
    """Wiener-like low-pass by FFT, a convolution by loops, and a band power ratio."""
    n = signal.size
    x = signal - signal.mean()
    x *= np.hanning(n)

    spec = np.fft.rfft(x)
    freq = np.fft.rfftfreq(n, d=0.1)
    gain = np.zeros(spec.shape, dtype=complex)
    gain[:] = 1.0 / (1.0 + 1j * freq / cutoff)
    gain[0] = 0.0
    spec *= gain
    smooth = np.fft.irfft(spec, n)

    # short FIR afterwards, "valid" part only
    taps = [0.1, 0.25, 0.3, 0.25, 0.1]
    fir = np.zeros(n - len(taps) + 1)
    for i in range(fir.size):
        for k, tap in enumerate(taps):
            fir[i] += tap * smooth[i + k]

    power = (spec * spec.conj()).real
    power[1:-1] *= 2.0
    band = (freq > 0.5) & (freq < 2.0)
    ratio = power[band].sum() / power.sum()

    z = np.fft.fft(fir)
    z[z.size // 2 + 1:] = 0.0           # analytic signal
    z[1:z.size // 2] *= 2
    envelope = np.abs(np.fft.ifft(z))
    return ratio + envelope.take([5, 9, 13]).sum() + fir.cumsum().var()


_t = np.arange(32) * 0.1
ARGUMENTS = (np.sin(2 * np.pi * 0.9 * _t) + 0.4 * np.cos(2 * np.pi * 2.7 * _t + 0.3) + 0.1 * _t, 1.4)
