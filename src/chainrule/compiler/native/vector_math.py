"""Branch-free elementary functions of scalars, which LLVM can vectorise.

LLVM vectorises arithmetic and selections, not calls of libm. Each function reduces its argument,
evaluates a minimax polynomial and restores the exponent through the bits of the number. They are
plain Python functions of NumPy scalars; `jit` compiles them. `tools/polynomials.py` computes the
coefficients. There is one version for float32 and one for float64, since degrees, limits and bit
patterns differ, and types follow from the source. The error bounds in ulp hold for all
numbers, also subnormal ones, and are tested against mpmath:

=========  =======  =======
function   float32  float64
=========  =======  =======
exp        1.5      1.5
exp2       1.5      1.5
expm1      2.5      2.5
log        1.5      1.5
log2       2        2
log10      2.5      2.5
log1p      2        2
tanh       2.5      2.5
sinh       2        2
cosh       2        2
erf        2.5      2.5
pow        1
√(x²+y²)  1.5      1.5
=========  =======  =======
"""

from __future__ import annotations

from typing import Any

import numpy as np

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64

Number = Any
INF = np.inf
NAN = np.nan


# --- exponentials: x = n ln 2 + r with |r| ≤ ln 2 / 2, and exp(r) = 1 + r + r² p(r) ---------------
# n is rounded by adding 1.5 · 2^(fraction bits): the last bits of the sum are n.


def exp_f4(x: Number) -> Number:
    """Return e to the x."""
    y = f4(-104.0) if x < f4(-104.0) else x
    return exp_scaled_f4(f4(89.0) if y > f4(89.0) else y, i4(127))


def exp_scaled_f4(y: Number, bias: Number) -> Number:
    """Return e to the y times a power of 2, which is 1 for a `bias` of 127."""
    shifted = y * f4(1.442695) + f4(12582912.0)
    n = shifted - f4(12582912.0)
    r = (y - n * f4(0.69314575)) - n * f4(1.4286068e-06)
    p = f4(0.0013941322)
    p = p * r + f4(0.008363295)
    p = p * r + f4(0.041666374)
    p = p * r + f4(0.16666576)
    p = p * r + f4(0.5)
    p = r * r * p + r + f4(1.0)
    k = i4(f4(shifted).view(i4) - i4(0x4B400000))
    half = i4(k >> i4(1))  # two factors, as 2**n may be out of range
    a = i4(i4(half + bias) << i4(23)).view(f4)
    b = i4(i4(i4(k - half) + i4(127)) << i4(23)).view(f4)
    return p * a * b


def exp_f8(x: Number) -> Number:
    """Return e to the x."""
    y = f8(-746.0) if x < f8(-746.0) else x
    return exp_scaled_f8(f8(710.0) if y > f8(710.0) else y, i8(1023))


def exp_scaled_f8(y: Number, bias: Number) -> Number:
    """Return e to the y times a power of 2, which is 1 for a `bias` of 1023."""
    shifted = y * f8(1.4426950408889634) + f8(6755399441055744.0)
    n = shifted - f8(6755399441055744.0)
    r = (y - n * f8(0.6931471803691238)) - n * f8(1.9082149292705877e-10)
    p = f8(2.511027050068687e-08)
    p = p * r + f8(2.7620329517170696e-07)
    p = p * r + f8(2.7557241750305074e-06)
    p = p * r + f8(2.4801520787534583e-05)
    p = p * r + f8(0.00019841269887110348)
    p = p * r + f8(0.0013888888917542093)
    p = p * r + f8(0.008333333333322037)
    p = p * r + f8(0.04166666666662347)
    p = p * r + f8(0.16666666666666674)
    p = p * r + f8(0.5000000000000001)
    p = r * r * p + r + f8(1.0)
    k = f8(shifted).view(i8) - i8(0x4338000000000000)
    half = k >> i8(1)
    a = i8((half + bias) << i8(52)).view(f8)
    b = i8((k - half + i8(1023)) << i8(52)).view(f8)
    return p * a * b


def expm1_f4(x: Number) -> Number:
    """Return e to the x, less 1."""
    y = f4(-18.0) if x < f4(-18.0) else x
    y = f4(89.0) if y > f4(89.0) else y
    shifted = y * f4(1.442695) + f4(12582912.0)
    n = shifted - f4(12582912.0)
    r = (y - n * f4(0.69314575)) - n * f4(1.4286068e-06)
    p = f4(0.0013941322)
    p = p * r + f4(0.008363295)
    p = p * r + f4(0.041666374)
    p = p * r + f4(0.16666576)
    p = p * r + f4(0.5)
    p = r * r * p + r
    k = i4(f4(shifted).view(i4) - i4(0x4B400000))
    scale = i4(i4(k + i4(126)) << i4(23)).view(f4)  # of half the result, which cannot overflow
    m = f4(2.0) * (scale * p + (scale - f4(0.5)))
    return x if abs(x) < f4(2.9e-08) else m


def expm1_f8(x: Number) -> Number:
    """Return e to the x, less 1."""
    y = f8(-38.0) if x < f8(-38.0) else x
    y = f8(710.0) if y > f8(710.0) else y
    shifted = y * f8(1.4426950408889634) + f8(6755399441055744.0)
    n = shifted - f8(6755399441055744.0)
    r = (y - n * f8(0.6931471803691238)) - n * f8(1.9082149292705877e-10)
    p = f8(2.511027050068687e-08)
    p = p * r + f8(2.7620329517170696e-07)
    p = p * r + f8(2.7557241750305074e-06)
    p = p * r + f8(2.4801520787534583e-05)
    p = p * r + f8(0.00019841269887110348)
    p = p * r + f8(0.0013888888917542093)
    p = p * r + f8(0.008333333333322037)
    p = p * r + f8(0.04166666666662347)
    p = p * r + f8(0.16666666666666674)
    p = p * r + f8(0.5000000000000001)
    p = r * r * p + r
    k = f8(shifted).view(i8) - i8(0x4338000000000000)
    scale = i8((k + i8(1022)) << i8(52)).view(f8)
    m = f8(2.0) * (scale * p + (scale - f8(0.5)))
    return x if abs(x) < f8(5e-17) else m


def tanh_f4(x: Number) -> Number:
    """Return the hyperbolic tangent."""
    a = abs(x)
    a = f4(10.0) if a > f4(10.0) else a
    m = expm1_f4(f4(2.0) * a)
    return np.copysign(m / (m + f4(2.0)), x)


def tanh_f8(x: Number) -> Number:
    """Return the hyperbolic tangent."""
    a = abs(x)
    a = f8(20.0) if a > f8(20.0) else a
    m = expm1_f8(f8(2.0) * a)
    return np.copysign(m / (m + f8(2.0)), x)


def half_exp_f4(x: Number) -> Number:
    """Return half of e to the x, for x from 0 on."""
    y = f4(91.0) if x > f4(91.0) else x
    return exp_scaled_f4(y, i4(126))


def sinh_f4(x: Number) -> Number:
    """Return the hyperbolic sine."""
    a = abs(x)
    h = half_exp_f4(a)
    far = h - f4(0.25) / h
    z = a * a
    p = f4(2.8174393e-06)
    p = p * z + f4(0.00019836066)
    p = p * z + f4(0.0083333505)
    p = p * z + f4(0.16666667)
    near = (a * z) * p + a
    return np.copysign(far if a > f4(1.0) else near, x)


def cosh_f4(x: Number) -> Number:
    """Return the hyperbolic cosine."""
    h = half_exp_f4(abs(x))
    return h + f4(0.25) / h


def exp2_f4(x: Number) -> Number:
    """Return 2 to the x."""
    y = f4(-152.0) if x < f4(-152.0) else x
    y = f4(129.0) if y > f4(129.0) else y
    shifted = y + f4(12582912.0)
    r = y - (shifted - f4(12582912.0))
    p = f4(0.00015476572)
    p = p * r + f4(0.0013400535)
    p = p * r + f4(0.009618003)
    p = p * r + f4(0.05550327)
    p = p * r + f4(0.2402265)
    p = p * r + f4(0.6931472)
    p = r * p + f4(1.0)
    k = i4(f4(shifted).view(i4) - i4(0x4B400000))
    half = i4(k >> i4(1))
    a = i4(i4(half + i4(127)) << i4(23)).view(f4)
    b = i4(i4(i4(k - half) + i4(127)) << i4(23)).view(f4)
    return p * a * b


def half_exp_f8(x: Number) -> Number:
    """Return half of e to the x, for x from 0 on."""
    y = f8(712.0) if x > f8(712.0) else x
    return exp_scaled_f8(y, i8(1022))


def sinh_f8(x: Number) -> Number:
    """Return the hyperbolic sine."""
    a = abs(x)
    h = half_exp_f8(a)
    far = h - f8(0.25) / h
    z = a * a
    p = f8(7.759311182414453e-13)
    p = p * z + f8(1.6057240376677975e-10)
    p = p * z + f8(2.505212339807126e-08)
    p = p * z + f8(2.755731915534013e-06)
    p = p * z + f8(0.0001984126984143767)
    p = p * z + f8(0.008333333333333139)
    p = p * z + f8(0.16666666666666669)
    near = (a * z) * p + a
    return np.copysign(far if a > f8(1.0) else near, x)


def cosh_f8(x: Number) -> Number:
    """Return the hyperbolic cosine."""
    h = half_exp_f8(abs(x))
    return h + f8(0.25) / h


def exp2_f8(x: Number) -> Number:
    """Return 2 to the x."""
    y = f8(-1077.0) if x < f8(-1077.0) else x
    y = f8(1025.0) if y > f8(1025.0) else y
    shifted = y + f8(6755399441055744.0)
    r = y - (shifted - f8(6755399441055744.0))
    p = f8(4.457426469590187e-10)
    p = p * r + f8(7.073935991767895e-09)
    p = p * r + f8(1.0178046207685348e-07)
    p = p * r + f8(1.3215434400442109e-06)
    p = p * r + f8(1.5252733868122107e-05)
    p = p * r + f8(0.00015403530458858408)
    p = p * r + f8(0.001333355814637848)
    p = p * r + f8(0.009618129107592768)
    p = p * r + f8(0.05550410866482174)
    p = p * r + f8(0.24022650695910133)
    p = p * r + f8(0.6931471805599453)
    p = r * p + f8(1.0)
    k = i8(f8(shifted).view(i8) - i8(0x4338000000000000))
    half = i8(k >> i8(1))
    a = i8(i8(half + i8(1023)) << i8(52)).view(f8)
    b = i8(i8(i8(k - half) + i8(1023)) << i8(52)).view(f8)
    return p * a * b


# --- logarithms: x = 2^e (1 + f) with 1 + f from √½ to √2 -----------------------------------------


def log_f4(x: Number) -> Number:
    """Return the natural logarithm."""
    f = fraction_f4(x)
    e = exponent_f4(x)
    z = f * f
    low = log_terms_f4(f) + (e * f4(1.4286068e-06) - f4(0.5) * z)
    found = e * f4(0.69314575) + (f + low)
    return log_limits_f4(x, found)


def log2_f4(x: Number) -> Number:
    """Return the logarithm to the base 2."""
    f = fraction_f4(x)
    found = (f - (f4(0.5) * f * f - log_terms_f4(f))) * f4(1.442695) + exponent_f4(x)
    return log_limits_f4(x, found)


def log10_f4(x: Number) -> Number:
    """Return the logarithm to the base 10."""
    f = fraction_f4(x)
    e = exponent_f4(x)
    low = (f - (f4(0.5) * f * f - log_terms_f4(f))) * f4(0.4342945) + e * f4(4.605039e-06)
    return log_limits_f4(x, e * f4(0.3010254) + low)


def exponent_f4(x: Number) -> Number:
    """Return the e of x = 2^e (1 + f)."""
    small = x < f4(1.1754944e-38)
    y = x * f4(8388608.0) if small else x
    k = i4(i4(f4(y).view(i4) - i4(0x3F3504F3)) >> i4(23))
    return f4(k) - (f4(23.0) if small else f4(0.0))


def fraction_f4(x: Number) -> Number:
    """Return the f of x = 2^e (1 + f)."""
    y = x * f4(8388608.0) if x < f4(1.1754944e-38) else x
    bits = f4(y).view(i4)
    k = i4(i4(bits - i4(0x3F3504F3)) >> i4(23))
    return i4(bits - i4(k << i4(23))).view(f4) - f4(1.0)


def log_terms_f4(f: Number) -> Number:
    """Return log(1 + f) - f + f²/2."""
    p = f4(-0.078600176)
    p = p * f + f4(0.1288589)
    p = p * f + f4(-0.13130434)
    p = p * f + f4(0.14180695)
    p = p * f + f4(-0.16624351)
    p = p * f + f4(0.20002303)
    p = p * f + f4(-0.25000817)
    p = p * f + f4(0.33333316)
    return f * (f * f) * p


def log_limits_f4(x: Number, found: Number) -> Number:
    """Return a logarithm of a number, also if it is not positive and finite."""
    found = found if x < f4(INF) else x
    return found if x > f4(0.0) else (f4(-INF) if x == f4(0.0) else f4(NAN))


def log_f8(x: Number) -> Number:
    """Return the natural logarithm."""
    f = fraction_f8(x)
    e = exponent_f8(x)
    low = log_terms_f8(f) + e * f8(1.9082149292705877e-10)
    found = e * f8(0.6931471803691238) + (f - (f8(0.5) * f * f - low))
    return log_limits_f8(x, found)


def log2_f8(x: Number) -> Number:
    """Return the logarithm to the base 2."""
    f = fraction_f8(x)
    found = (f - (f8(0.5) * f * f - log_terms_f8(f))) * f8(1.4426950408889634) + exponent_f8(x)
    return log_limits_f8(x, found)


def log10_f8(x: Number) -> Number:
    """Return the logarithm to the base 10."""
    f = fraction_f8(x)
    e = exponent_f8(x)
    low = (f - (f8(0.5) * f * f - log_terms_f8(f))) * f8(0.4342944819032518) + e * f8(
        3.694239077158931e-13
    )
    return log_limits_f8(x, e * f8(0.30102999566361177) + low)


def exponent_f8(x: Number) -> Number:
    """Return the e of x = 2^e (1 + f)."""
    small = x < f8(2.2250738585072014e-308)
    y = x * f8(4503599627370496.0) if small else x
    k = i8(i8(f8(y).view(i8) - i8(0x3FE6A09E667F3BCD)) >> i8(52))
    return f8(k) - (f8(52.0) if small else f8(0.0))


def fraction_f8(x: Number) -> Number:
    """Return the f of x = 2^e (1 + f)."""
    y = x * f8(4503599627370496.0) if x < f8(2.2250738585072014e-308) else x
    bits = f8(y).view(i8)
    k = i8(i8(bits - i8(0x3FE6A09E667F3BCD)) >> i8(52))
    return i8(bits - i8(k << i8(52))).view(f8) - f8(1.0)


def log_terms_f8(f: Number) -> Number:
    """Return log(1 + f) - f + f²/2."""
    s = f / (f8(2.0) + f)
    z = s * s
    p = f8(0.14799066557838989)
    p = p * z + f8(0.15313755822001882)
    p = p * z + f8(0.18183575158510998)
    p = p * z + f8(0.222221983787046)
    p = p * z + f8(0.28571428744138183)
    p = p * z + f8(0.3999999999940751)
    p = p * z + f8(0.6666666666666735)
    return s * (f8(0.5) * f * f + z * p)


def log_limits_f8(x: Number, found: Number) -> Number:
    """Return a logarithm of a number, also if it is not positive and finite."""
    found = found if x < f8(INF) else x
    return found if x > f8(0.0) else (f8(-INF) if x == f8(0.0) else f8(NAN))


def log1p_f4(x: Number) -> Number:
    """Return the natural logarithm of 1 + x."""
    u = f4(1.0) + x
    lost = (x - (u - f4(1.0))) / u
    found = log_f4(u) + (lost if abs(lost) < f4(1.0) else f4(0.0))
    return x if abs(x) < f4(2.9e-08) else found


def log1p_f8(x: Number) -> Number:
    """Return the natural logarithm of 1 + x."""
    u = f8(1.0) + x
    lost = (x - (u - f8(1.0))) / u
    found = log_f8(u) + (lost if abs(lost) < f8(1.0) else f8(0.0))
    return x if abs(x) < f8(5e-17) else found


# --- the error function: x p(x²) up to 1, from there on 1 - erfc ----------------------------------


def erf_f4(x: Number) -> Number:
    """Return the error function."""
    a = abs(x)
    a = f4(4.0) if a > f4(4.0) else a
    z = a * a
    p = f4(7.853844e-05)
    p = p * z + f4(-0.0008010189)
    p = p * z + f4(0.0051883273)
    p = p * z + f4(-0.026853811)
    p = p * z + f4(0.112835854)
    p = p * z + f4(-0.37612626)
    p = p * z + f4(1.1283791)
    q = f4(-0.0001855736)  # -log(erfc(a)) is nearly a parabola
    q = q * a + f4(0.0029396045)
    q = q * a + f4(-0.02180531)
    q = q * a + f4(0.10303736)
    q = q * a + f4(0.6382257)
    q = q * a + f4(1.12704)
    q = q * a + f4(0.00035371768)
    far = np.copysign(f4(1.0) - exp_f4(-q), x)
    return far if a >= f4(1.0) else x * p


def erf_f8(x: Number) -> Number:
    """Return the error function."""
    a = abs(x)
    a = f8(6.0) if a > f8(6.0) else a
    z = a * a
    p = f8(-7.77944891324782e-10)
    p = p * z + f8(1.3710969859773255e-08)
    p = p * z + f8(-1.6206311317613116e-07)
    p = p * z + f8(1.644713125315939e-06)
    p = p * z + f8(-1.492471227639966e-05)
    p = p * z + f8(0.00012055293575585293)
    p = p * z + f8(-0.0008548325929271576)
    p = p * z + f8(0.00522397760611762)
    p = p * z + f8(-0.026866170643111375)
    p = p * z + f8(0.11283791670944185)
    p = p * z + f8(-0.3761263890318352)
    p = p * z + f8(1.1283791670955126)
    t = (a - f8(2.0)) / (a + f8(2.0))  # exp(a²) erfc(a) is a polynomial of this
    q = f8(-1.19228431553397e-05)
    q = q * t + f8(3.275340647335426e-05)
    q = q * t + f8(0.00017408363390905769)
    q = q * t + f8(4.304329110070149e-05)
    q = q * t + f8(-0.0009820557172293947)
    q = q * t + f8(-0.0008471351713146088)
    q = q * t + f8(0.00699746454325756)
    q = q * t + f8(0.0037328925042186406)
    q = q * t + f8(-0.07897858103683207)
    q = q * t + f8(0.24165819424104126)
    q = q * t + f8(-0.4271858474139429)
    q = q * t + f8(0.2553956763105071)
    far = np.copysign(f8(1.0) - exp_f8(-z) * q, x)
    return far if a >= f8(1.0) else x * p


# --- powers: in float64, where a product's rounding is too small to be seen in float32 ------------


def pow_f4(x: Number, y: Number) -> Number:
    """Return x to the y."""
    a, b = f8(abs(x)), f8(y)
    found = exp_f8(b * log_f8(a))
    half = f8(0.5) * b
    whole = np.floor(b) == b
    odd = whole & (np.floor(half) != half)
    negative = np.copysign(f8(1.0), f8(x)) < f8(0.0)
    found = -found if negative & odd else found
    found = f8(NAN) if (x < f4(0.0)) & (not whole) & (a < f8(INF)) else found
    found = f8(1.0) if (a == f8(1.0)) & (abs(b) == f8(INF)) else found
    return f4(1.0) if (x == f4(1.0)) | (y == f4(0.0)) else f4(found)


# --- selections, comparisons and sums -------------------------------------------------------------


def hypot_f4(x: Number, y: Number) -> Number:
    """Return the root of x² + y²; scaled, no square overflows or underflows."""
    a = abs(x)
    b = abs(y)
    most = a if a > b else b
    is_large = most > f4(1.1529215e18)  # 2**60
    is_small = most < f4(9.094947e-13)  # 2**-40
    down = f4(8.271806e-25) if is_large else f4(1.0)  # 2**-80
    scale = f4(1.2676506e30) if is_small else down  # 2**100
    up = f4(1.2089258e24) if is_large else f4(1.0)
    back = f4(7.888609e-31) if is_small else up
    root = np.sqrt((x * scale) * (x * scale) + (y * scale) * (y * scale)) * back
    return f4(INF) if (a == f4(INF)) | (b == f4(INF)) else root


def hypot_f8(x: Number, y: Number) -> Number:
    """Return the root of x² + y²; scaled, no square overflows or underflows."""
    a = abs(x)
    b = abs(y)
    most = a if a > b else b
    is_large = most > f8(3.273390607896142e150)  # 2**500
    is_small = most < f8(3.4395525670743494e-136)  # 2**-450
    down = f8(2.409919865102884e-181) if is_large else f8(1.0)  # 2**-600
    scale = f8(4.149515568880993e180) if is_small else down  # 2**600
    up = f8(4.149515568880993e180) if is_large else f8(1.0)
    back = f8(2.409919865102884e-181) if is_small else up
    root = np.sqrt((x * scale) * (x * scale) + (y * scale) * (y * scale)) * back
    return f8(INF) if (a == f8(INF)) | (b == f8(INF)) else root


def quotient_real(a: Number, b: Number, c: Number, d: Number) -> Number:
    """Return the real part of (a + i b) / (c + i d)."""
    large = c if abs(c) >= abs(d) else d
    small = d if abs(c) >= abs(d) else c
    ratio = small / large if large != 0 else small  # 0 of 0
    scale = 1 / (large + small * ratio) if large != 0 else 1 / abs(large)
    return (a + b * ratio if abs(c) >= abs(d) else a * ratio + b) * scale


def quotient_imag(a: Number, b: Number, c: Number, d: Number) -> Number:
    """Return the imaginary part of (a + i b) / (c + i d)."""
    large = c if abs(c) >= abs(d) else d
    small = d if abs(c) >= abs(d) else c
    ratio = small / large if large != 0 else small
    scale = 1 / (large + small * ratio) if large != 0 else 1 / abs(large)
    return (b - a * ratio if abs(c) >= abs(d) else b * ratio - a) * scale


def clip(x: Number, low: Number, high: Number) -> Number:
    """Return x limited to [low, high]; nan if any argument is nan."""
    y = x if (x >= low) | (x != x) else low
    return y if (y <= high) | (y != y) else high


def sign_f4(x: Number) -> Number:
    """Return -1, 0 or 1; nan of nan."""
    return f4(1.0) if x > f4(0.0) else (f4(-1.0) if x < f4(0.0) else (f4(0.0) if x == x else x))


def sign_f8(x: Number) -> Number:
    """Return -1, 0 or 1; nan of nan."""
    return f8(1.0) if x > f8(0.0) else (f8(-1.0) if x < f8(0.0) else (f8(0.0) if x == x else x))


def larger(x: Number, y: Number) -> Number:
    """Return the larger number; nan if one of them is."""
    return x if (x >= y) | (x != x) else y


def smaller(x: Number, y: Number) -> Number:
    """Return the smaller number; nan if one of them is."""
    return x if (x <= y) | (x != x) else y


# Ranks: integers in the order of the numbers, whose extremum LLVM can vectorise. nan is beyond all
# others, so that it propagates.


def rank_f4(x: Number, nan: Number) -> Number:
    """Return an integer in the order of the numbers; `nan` for nan."""
    bits = f4(x).view(i4)
    rank = i4(bits ^ i4(i4(bits >> i4(31)) & i4(0x7FFFFFFF)))
    return rank if x == x else nan


def rank_f8(x: Number, nan: Number) -> Number:
    """Return an integer in the order of the numbers; `nan` for nan."""
    bits = f8(x).view(i8)
    rank = bits ^ ((bits >> i8(63)) & i8(0x7FFFFFFFFFFFFFFF))
    return rank if x == x else nan


def ranked_f4(rank: Number) -> Number:
    """Return the number of a rank; the first and the last are nan."""
    return i4(rank ^ i4(i4(rank >> i4(31)) & i4(0x7FFFFFFF))).view(f4)


def ranked_f8(rank: Number) -> Number:
    """Return the number of a rank; the first and the last are nan."""
    return i8(rank ^ ((rank >> i8(63)) & i8(0x7FFFFFFFFFFFFFFF))).view(f8)


def times_plus(total: Number, x: Number, y: Number) -> Number:
    """Return total + x y; the compiler may reorder such sums."""
    return total + x * y


def plus(total: Number, x: Number) -> Number:
    """Return total + x; the compiler may reorder such sums."""
    return total + x
