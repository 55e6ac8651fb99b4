"""Branch-free trigonometric functions of scalars, written as those of `vector_math` are.

An argument is reduced to n π/2 + r with |r| ≤ π/4 (Cody and Waite, Software Manual for the
Elementary Functions, 1980): the parts of π/2 are so short that their products with n are exact up
to `LIMIT`, with and without fused multiply-add. libm computes the few numbers beyond
(`libm_beyond`). sin and cos of one number share the reduction and both polynomials. The errors
are at most 2.5 ulp (tan; others 2) up to `LIMIT`, tested against mpmath; beyond it they are libm's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

f4, f8, i4, i8 = np.float32, np.float64, np.int32, np.int64

Number = Any

INF = np.inf
LIMIT = 1048576.0
SHIFT = 6755399441055744.0  # 1.5 · 2^52: the last bits of a sum with it are those of an integer
PER_QUARTER = 0.6366197723675814  # 2 / π
QUARTER = 1.5707963267341256  # π/2 in parts of 33 bits
QUARTER_2 = 6.077100506303966e-11
QUARTER_3 = 2.0222662487111665e-21
QUARTER_4 = 8.4784276603689e-32
QUARTER_REST = 6.077100506506192e-11  # after the first part


def sin_f4(x: Number) -> Number:
    """Return the sine."""
    n = quarters_f8(f8(abs(x)))
    r = f4(rest_f4(f8(abs(x)), n - f8(SHIFT)))
    q = i4(f8(n).view(i8))
    y = cos_near_f4(r) if i4(q & i4(1)) != i4(0) else sin_near_f4(r)
    sign = i4(f4(x).view(i4) & i4(-0x80000000))
    y = i4(f4(y).view(i4) ^ i4(i4(i4(q & i4(2)) << i4(30)) ^ sign)).view(f4)
    return sin_beyond_f4(x, f4(LIMIT), y)


def sin_f8(x: Number) -> Number:
    """Return the sine."""
    n = quarters_f8(abs(x))
    r = rest_f8(abs(x), n - f8(SHIFT))
    q = f8(n).view(i8)
    y = cos_near_f8(r) if (q & i8(1)) != i8(0) else sin_near_f8(r)
    sign = f8(x).view(i8) & i8(-0x8000000000000000)
    y = i8(f8(y).view(i8) ^ (((q & i8(2)) << i8(62)) ^ sign)).view(f8)
    return sin_beyond_f8(x, f8(LIMIT), y)


def cos_f4(x: Number) -> Number:
    """Return the cosine."""
    n = quarters_f8(f8(abs(x)))
    r = f4(rest_f4(f8(abs(x)), n - f8(SHIFT)))
    q = i4(f8(n).view(i8))
    y = sin_near_f4(r) if i4(q & i4(1)) != i4(0) else cos_near_f4(r)
    y = i4(f4(y).view(i4) ^ i4(i4(i4(q + i4(1)) & i4(2)) << i4(30))).view(f4)
    return cos_beyond_f4(x, f4(LIMIT), y)


def cos_f8(x: Number) -> Number:
    """Return the cosine."""
    n = quarters_f8(abs(x))
    r = rest_f8(abs(x), n - f8(SHIFT))
    q = f8(n).view(i8)
    y = sin_near_f8(r) if (q & i8(1)) != i8(0) else cos_near_f8(r)
    y = i8(f8(y).view(i8) ^ (((q + i8(1)) & i8(2)) << i8(62))).view(f8)
    return cos_beyond_f8(x, f8(LIMIT), y)


def tan_f4(x: Number) -> Number:
    """Return the tangent."""
    n = quarters_f8(f8(abs(x)))
    wide = rest_f4(f8(abs(x)), n - f8(SHIFT))
    r = f4(wide)
    low = f4(wide - f8(r))
    q = i4(f8(n).view(i8))
    z = r * r
    top = r + ((r * z) * sin_terms_f4(z) + low)
    bottom = f4(1.0) - (z * (f4(0.5) - z * cos_terms_f4(z)) + r * low)
    is_odd = i4(q & i4(1)) != i4(0)
    y = (-bottom if is_odd else top) / (top if is_odd else bottom)
    sign = f4(x).view(i4) & i4(-0x80000000)
    y = i4(f4(y).view(i4) ^ sign).view(f4)
    return tan_beyond_f4(x, f4(LIMIT), y)


def tan_f8(x: Number) -> Number:
    """Return the tangent."""
    n = quarters_f8(abs(x))
    r = rest_top_f8(abs(x), n - f8(SHIFT))
    low = rest_low_f8(abs(x), n - f8(SHIFT), r)
    q = f8(n).view(i8)
    z = r * r
    top = r + ((r * z) * sin_terms_f8(z) + low)
    bottom = f8(1.0) - (z * (f8(0.5) - z * cos_terms_f8(z)) + r * low)
    is_odd = i8(q & i8(1)) != i8(0)
    y = (-bottom if is_odd else top) / (top if is_odd else bottom)
    sign = f8(x).view(i8) & i8(-0x8000000000000000)
    y = i8(f8(y).view(i8) ^ sign).view(f8)
    return tan_beyond_f8(x, f8(LIMIT), y)


# --- reduction ------------------------------------------------------------------------------------


def quarters_f8(x: Number) -> Number:
    """Return the number of quarters of the circle in an angle, plus `SHIFT`."""
    return x * f8(PER_QUARTER) + f8(SHIFT)


def rest_f4(x: Number, n: Number) -> Number:
    """Return x - n π/2, of which float32 are needed."""
    return (x - n * f8(QUARTER)) - n * f8(QUARTER_REST)


def rest_f8(x: Number, n: Number) -> Number:
    """Return x - n π/2."""
    return rest_top_f8(x, n) - n * f8(QUARTER_4)


def rest_top_f8(x: Number, n: Number) -> Number:
    """Return x - n π/2 without the last part of π/2."""
    return ((x - n * f8(QUARTER)) - n * f8(QUARTER_2)) - n * f8(QUARTER_3)


def rest_low_f8(x: Number, n: Number, r: Number) -> Number:
    """Return what the rounding of x - n π/2 without its last part, r, has lost."""
    first = x - n * f8(QUARTER)
    second = first - n * f8(QUARTER_2)
    lost = ((first - second) - n * f8(QUARTER_2)) + ((second - r) - n * f8(QUARTER_3))
    return lost - n * f8(QUARTER_4)


def sin_terms_f4(z: Number) -> Number:
    """Return (sin(r) - r) / r³ for z = r²."""
    p = f4(-0.00019516662)
    p = p * z + f4(0.008332173)
    p = p * z + f4(-0.16666655)
    return p


def sin_near_f4(r: Number) -> Number:
    """Return the sine of an angle up to π/4."""
    z = r * r
    return (r * z) * sin_terms_f4(z) + r


def sin_terms_f8(z: Number) -> Number:
    """Return (sin(r) - r) / r³ for z = r²."""
    p = f8(1.5896506705330158e-10)
    p = p * z + f8(-2.5050753295890083e-08)
    p = p * z + f8(2.755731366226525e-06)
    p = p * z + f8(-0.0001984126982972582)
    p = p * z + f8(0.008333333333322316)
    p = p * z + f8(-0.16666666666666632)
    return p


def sin_near_f8(r: Number) -> Number:
    """Return the sine of an angle up to π/4."""
    z = r * r
    return (r * z) * sin_terms_f8(z) + r


def cos_terms_f4(z: Number) -> Number:
    """Return (cos(r) - 1 + r²/2) / r⁴ for z = r²."""
    p = f4(2.4437735e-05)
    p = p * z + f4(-0.0013887362)
    p = p * z + f4(0.041666646)
    return p


def cos_near_f4(r: Number) -> Number:
    """Return the cosine of an angle up to π/4."""
    z = r * r
    return f4(1.0) - z * (f4(0.5) - z * cos_terms_f4(z))


def cos_terms_f8(z: Number) -> Number:
    """Return (cos(r) - 1 + r²/2) / r⁴ for z = r²."""
    p = f8(-1.1359450597723157e-11)
    p = p * z + f8(2.087571959628841e-09)
    p = p * z + f8(-2.755731432631377e-07)
    p = p * z + f8(2.4801587289395946e-05)
    p = p * z + f8(-0.0013888888888873992)
    p = p * z + f8(0.0416666666666666)
    return p


def cos_near_f8(r: Number) -> Number:
    """Return the cosine of an angle up to π/4."""
    z = r * r
    return f8(1.0) - z * (f8(0.5) - z * cos_terms_f8(z))


# --- inverse functions ---------------------------------------------------------------------------


def asin_f4(x: Number) -> Number:
    """Return the inverse sine."""
    a = abs(x)
    is_far = a > f4(0.5)
    z = f4(0.5) * (f4(1.0) - a) if is_far else a * a
    s = np.sqrt(z) if is_far else a
    y = (s * z) * asin_terms_f4(z)
    far = f4(1.5707964) - (f4(2.0) * s - (f4(-4.371139e-08) - f4(2.0) * y))
    return np.copysign(far if is_far else s + y, x)


def acos_f4(x: Number) -> Number:
    """Return the inverse cosine."""
    a = abs(x)
    is_far = a > f4(0.5)
    z = f4(0.5) * (f4(1.0) - a) if is_far else a * a
    s = np.sqrt(z) if is_far else x
    y = (s * z) * asin_terms_f4(z)
    right = f4(2.0) * (s + y)
    far = f4(3.1415927) - (right - f4(-8.742278e-08)) if x < f4(0.0) else right
    return far if is_far else f4(1.5707964) - (s - (f4(-4.371139e-08) - y))


def asin_terms_f4(z: Number) -> Number:
    """Return (asin(s) - s) / s³ for z = s² up to ¼."""
    p = f4(0.042278476)
    p = p * z + f4(0.02411452)
    p = p * z + f4(0.045483325)
    p = p * z + f4(0.07495196)
    p = p * z + f4(0.16666755)
    return p


def atan_f4(x: Number) -> Number:
    """Return the inverse tangent."""
    return np.copysign(angle_f4(abs(x), f4(1.0)), x)


def atan2_f4(y: Number, x: Number) -> Number:
    """Return the angle of the point (x, y)."""
    a = abs(y)
    b = abs(x)
    most = a if a > b else b
    scale = f4(0.25) if most > f4(1e38) else f4(1.0)  # for the sum
    a = a * scale
    b = b * scale
    are_inf = (a == f4(INF)) & (b == f4(INF))
    a = f4(1.0) if are_inf else a
    b = f4(1.0) if are_inf | ((a == f4(0.0)) & (b == f4(0.0))) else b
    y_right = angle_f4(a, b)
    is_left = np.copysign(f4(1.0), x) < f4(0.0)
    angle = f4(3.1415927) - (y_right - f4(-8.742278e-08)) if is_left else y_right
    return np.copysign(angle, y)


def angle_f4(a: Number, b: Number) -> Number:
    """Return the angle of the point (b, a) of the first quadrant."""
    is_steep = a > f4(2.0) * b
    is_flat = f4(2.0) * a <= b
    top = a if is_flat else (-b if is_steep else a - b)
    bottom = b if is_flat else (a if is_steep else a + b)
    base = f4(1.5707964) if is_steep else f4(0.7853982)
    base = f4(0.0) if is_flat else base
    rest = f4(-4.371139e-08) if is_steep else f4(-2.1855694e-08)
    rest = f4(0.0) if is_flat else rest
    t = top / bottom
    z = t * t
    p = f4(0.038743556)
    p = p * z + f4(-0.079858676)
    p = p * z + f4(0.10941562)
    p = p * z + f4(-0.14272161)
    p = p * z + f4(0.19999495)
    p = p * z + f4(-0.33333328)
    return base + (t + ((t * z) * p + rest))


def asin_f8(x: Number) -> Number:
    """Return the inverse sine."""
    a = abs(x)
    is_far = a > f8(0.5)
    z = f8(0.5) * (f8(1.0) - a) if is_far else a * a
    s = np.sqrt(z) if is_far else a
    y = (s * z) * asin_terms_f8(z)
    far = f8(1.5707963267948966) - (f8(2.0) * s - (f8(6.123233995736766e-17) - f8(2.0) * y))
    return np.copysign(far if is_far else s + y, x)


def acos_f8(x: Number) -> Number:
    """Return the inverse cosine."""
    a = abs(x)
    is_far = a > f8(0.5)
    z = f8(0.5) * (f8(1.0) - a) if is_far else a * a
    s = np.sqrt(z) if is_far else x
    y = (s * z) * asin_terms_f8(z)
    right = f8(2.0) * (s + y)
    far = f8(3.141592653589793) - (right - f8(1.2246467991473532e-16)) if x < f8(0.0) else right
    return far if is_far else f8(1.5707963267948966) - (s - (f8(6.123233995736766e-17) - y))


def asin_terms_f8(z: Number) -> Number:
    """Return (asin(s) - s) / s³ for z = s² up to ¼."""
    p = f8(0.0328041334523674)
    p = p * z + f8(-0.021276093905529442)
    p = p * z + f8(0.021900602128466833)
    p = p * z + f8(0.003628118144905429)
    p = p * z + f8(0.010800680775874037)
    p = p * z + f8(0.011395323032956584)
    p = p * z + f8(0.01398125208396716)
    p = p * z + f8(0.01735157665114106)
    p = p * z + f8(0.022372216917927543)
    p = p * z + f8(0.03038194264076977)
    p = p * z + f8(0.04464285717597398)
    p = p * z + f8(0.07499999999969413)
    p = p * z + f8(0.16666666666666766)
    return p


def atan_f8(x: Number) -> Number:
    """Return the inverse tangent."""
    return np.copysign(angle_f8(abs(x), f8(1.0)), x)


def atan2_f8(y: Number, x: Number) -> Number:
    """Return the angle of the point (x, y)."""
    a = abs(y)
    b = abs(x)
    most = a if a > b else b
    scale = f8(0.25) if most > f8(1e307) else f8(1.0)  # for the sum
    a = a * scale
    b = b * scale
    are_inf = (a == f8(INF)) & (b == f8(INF))
    a = f8(1.0) if are_inf else a
    b = f8(1.0) if are_inf | ((a == f8(0.0)) & (b == f8(0.0))) else b
    y_right = angle_f8(a, b)
    is_left = np.copysign(f8(1.0), x) < f8(0.0)
    angle = f8(3.141592653589793) - (y_right - f8(1.2246467991473532e-16)) if is_left else y_right
    return np.copysign(angle, y)


def angle_f8(a: Number, b: Number) -> Number:
    """Return the angle of the point (b, a) of the first quadrant."""
    is_steep = a > f8(2.0) * b
    is_flat = f8(2.0) * a <= b
    top = a if is_flat else (-b if is_steep else a - b)
    bottom = b if is_flat else (a if is_steep else a + b)
    base = f8(1.5707963267948966) if is_steep else f8(0.7853981633974483)
    base = f8(0.0) if is_flat else base
    rest = f8(6.123233995736766e-17) if is_steep else f8(3.061616997868383e-17)
    rest = f8(0.0) if is_flat else rest
    t = top / bottom
    z = t * t
    p = f8(-0.008345970561343206)
    p = p * z + f8(0.023623860964961323)
    p = p * z + f8(-0.03709697332336814)
    p = p * z + f8(0.04588564230565517)
    p = p * z + f8(-0.0522978195780765)
    p = p * z + f8(0.05877766599418688)
    p = p * z + f8(-0.06666218673769546)
    p = p * z + f8(0.0769227707419265)
    p = p * z + f8(-0.09090907670679285)
    p = p * z + f8(0.1111111106864232)
    p = p * z + f8(-0.14285714284963563)
    p = p * z + f8(0.19999999999993306)
    p = p * z + f8(-0.33333333333333315)
    return base + (t + ((t * z) * p + rest))


# --- arguments beyond the limit: `libm_beyond` has the machine code -------------------------------


def sin_beyond_f4(x: Number, limit: Number, near: Number) -> Number:
    """Return `near`; beyond the limit the sine by libm."""
    return np.sin(x) if abs(x) > limit else near


def sin_beyond_f8(x: Number, limit: Number, near: Number) -> Number:
    """Return `near`; beyond the limit the sine by libm."""
    return np.sin(x) if abs(x) > limit else near


def cos_beyond_f4(x: Number, limit: Number, near: Number) -> Number:
    """Return `near`; beyond the limit the cosine by libm."""
    return np.cos(x) if abs(x) > limit else near


def cos_beyond_f8(x: Number, limit: Number, near: Number) -> Number:
    """Return `near`; beyond the limit the cosine by libm."""
    return np.cos(x) if abs(x) > limit else near


def tan_beyond_f4(x: Number, limit: Number, near: Number) -> Number:
    """Return `near`; beyond the limit the tangent by libm."""
    return np.tan(x) if abs(x) > limit else near


def tan_beyond_f8(x: Number, limit: Number, near: Number) -> Number:
    """Return `near`; beyond the limit the tangent by libm."""
    return np.tan(x) if abs(x) > limit else near
