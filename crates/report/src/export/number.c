/* A value: `kind` 1 is whole, 2 is real, and 0 is none (a division by zero, a number beyond 64
 * bits). Nothing here is undefined for any input; a rule without a value does not hold. */
typedef struct K_number { int kind; long long whole; double real; } K_number;

FUNCTION K_number K_none(void) {
  const K_number r = {0, 0, 0.0};
  return r;
}

FUNCTION K_number K_int(long long whole) {
  const K_number r = {1, whole, 0.0};
  return r;
}

FUNCTION K_number K_real(double real) {
  const double most = 1.7976931348623157e308;
  const K_number r = {real >= -most && real <= most ? 2 : 0, 0, real};
  return r;
}

FUNCTION double K_double(K_number a) { return a.kind == 1 ? (double)a.whole : a.real; }

/* 1 for true, 0 for false, -1 for no value. */
FUNCTION int K_truth(K_number a) {
  if (!a.kind) return -1;
  return a.kind == 1 ? a.whole != 0 : a.real != 0.0;
}

/* A whole number that is not negative; -1 for all else. */
FUNCTION long long K_extent(K_number a) {
  if (a.kind == 1) return a.whole < 0 ? -1 : a.whole;
  if (a.kind != 2 || a.real < 0.0 || a.real > 4503599627370496.0) return -1;
  return (double)(long long)a.real == a.real ? (long long)a.real : -1;
}

FUNCTION K_number K_not(K_number a) { return a.kind ? K_int(!K_truth(a)) : a; }

FUNCTION K_number K_bool(K_number a) { return a.kind ? K_int(K_truth(a)) : a; }

FUNCTION K_number K_and(K_number a, K_number b) { return K_truth(a) == 1 ? b : a; }

FUNCTION K_number K_or(K_number a, K_number b) { return K_truth(a) == 0 ? b : a; }

FUNCTION K_number K_either(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_truth(a) || K_truth(b)) : K_none();
}

FUNCTION K_number K_if(K_number condition, K_number a, K_number b) {
  return condition.kind ? (K_truth(condition) ? a : b) : condition;
}

/* The order of a whole and a real number, without rounding. */
FUNCTION int K_mixed(long long a, double b) {
  if (b >= 9223372036854775808.0) return -1;
  if (b < -9223372036854775808.0) return 1;
  if (a != (long long)b) return a < (long long)b ? -1 : 1;
  return (b < (double)a) - (b > (double)a);
}

FUNCTION int K_order(K_number a, K_number b) {
  if (a.kind == 1 && b.kind == 1) return (a.whole > b.whole) - (a.whole < b.whole);
  if (a.kind == 1) return K_mixed(a.whole, b.real);
  if (b.kind == 1) return -K_mixed(b.whole, a.real);
  return (a.real > b.real) - (a.real < b.real);
}

FUNCTION K_number K_eq(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_order(a, b) == 0) : K_none();
}

FUNCTION K_number K_ne(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_order(a, b) != 0) : K_none();
}

FUNCTION K_number K_lt(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_order(a, b) < 0) : K_none();
}

FUNCTION K_number K_le(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_order(a, b) <= 0) : K_none();
}

FUNCTION K_number K_gt(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_order(a, b) > 0) : K_none();
}

FUNCTION K_number K_ge(K_number a, K_number b) {
  return a.kind && b.kind ? K_int(K_order(a, b) >= 0) : K_none();
}

FUNCTION K_number K_min(K_number a, K_number b) {
  return a.kind && b.kind ? (K_order(b, a) < 0 ? b : a) : K_none();
}

FUNCTION K_number K_max(K_number a, K_number b) {
  return a.kind && b.kind ? (K_order(b, a) > 0 ? b : a) : K_none();
}

FUNCTION K_number K_neg(K_number a) {
  if (a.kind == 2) return K_real(-a.real);
  return a.kind && a.whole >= -9223372036854775807LL ? K_int(-a.whole) : K_none();
}

FUNCTION K_number K_abs(K_number a) { return K_max(a, K_neg(a)); }

FUNCTION K_number K_add(K_number a, K_number b) {
  const long long most = 9223372036854775807LL;
  if (!a.kind || !b.kind) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(K_double(a) + K_double(b));
  if (b.whole > 0 ? a.whole > most - b.whole : a.whole < -most - 1 - b.whole) return K_none();
  return K_int(a.whole + b.whole);
}

FUNCTION K_number K_sub(K_number a, K_number b) {
  const long long most = 9223372036854775807LL;
  if (!a.kind || !b.kind) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(K_double(a) - K_double(b));
  if (b.whole < 0 ? a.whole > most + b.whole : a.whole < -most - 1 + b.whole) return K_none();
  return K_int(a.whole - b.whole);
}

FUNCTION K_number K_mul(K_number a, K_number b) {
  const long long most = 9223372036854775807LL, least = -most - 1;
  const long long x = a.whole, y = b.whole;
  if (!a.kind || !b.kind) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(K_double(a) * K_double(b));
  if (x > 0 && (y > 0 ? x > most / y : y < least / x)) return K_none();
  if (x < 0 && (y > 0 ? x < least / y : y < most / x)) return K_none();
  return K_int(x * y);
}

/* The quotient of whole numbers, rounded once. */
FUNCTION double K_quotient(long long a, long long b) {
  const unsigned long long x = a < 0 ? 0ULL - (unsigned long long)a : (unsigned long long)a;
  const unsigned long long y = b < 0 ? 0ULL - (unsigned long long)b : (unsigned long long)b;
  unsigned long long whole = x / y, rest = x % y;
  double scale = (a < 0) == (b < 0) ? 1.0 : -1.0;
  while (rest && whole < 36028797018963968ULL) {
    rest *= 2;
    whole = 2 * whole + (rest >= y);
    if (rest >= y) rest -= y;
    scale *= 0.5;
  }
  return (double)(whole | (rest != 0)) * scale;
}

FUNCTION K_number K_div(K_number a, K_number b) {
  if (!a.kind || !b.kind || K_double(b) == 0.0) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(K_double(a) / K_double(b));
  return K_real(K_quotient(a.whole, b.whole));
}

FUNCTION double K_down(double a) {
  if (a >= 4503599627370496.0 || a <= -4503599627370496.0) return a;
  return (double)(long long)a > a ? (double)(long long)a - 1.0 : (double)(long long)a;
}

/* The remainder with the sign of a, exactly. */
FUNCTION double K_remainder(double a, double b) {
  const double y = b < 0.0 ? -b : b;
  double x = a < 0.0 ? -a : a, step = y;
  while (step <= x - step) step *= 2.0;
  for (; step >= y; step *= 0.5) {
    if (x >= step) x -= step;
  }
  return a < 0.0 ? -x : x;
}

FUNCTION double K_floorreal(double a, double b) {
  const double rest = K_remainder(a, b);
  const double below = rest != 0.0 && (b < 0.0) != (rest < 0.0) ? 1.0 : 0.0;
  const double quotient = (a - rest) / b - below;
  return quotient - K_down(quotient) > 0.5 ? K_down(quotient) + 1.0 : K_down(quotient);
}

FUNCTION K_number K_floordiv(K_number a, K_number b) {
  if (!a.kind || !b.kind || K_double(b) == 0.0) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(K_floorreal(K_double(a), K_double(b)));
  if (b.whole == -1) return K_neg(a);
  return K_int(a.whole / b.whole - (a.whole % b.whole != 0 && (a.whole < 0) != (b.whole < 0)));
}

FUNCTION K_number K_ceildiv(K_number a, K_number b) {
  if (!a.kind || !b.kind || K_double(b) == 0.0) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(-K_floorreal(-K_double(a), K_double(b)));
  if (b.whole == -1) return K_neg(a);
  return K_int(a.whole / b.whole + (a.whole % b.whole != 0 && (a.whole < 0) == (b.whole < 0)));
}

FUNCTION double K_modreal(double a, double b) {
  const double rest = K_remainder(a, b);
  return rest != 0.0 && (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}

FUNCTION K_number K_mod(K_number a, K_number b) {
  if (!a.kind || !b.kind || K_double(b) == 0.0) return K_none();
  if (a.kind == 2 || b.kind == 2) return K_real(K_modreal(K_double(a), K_double(b)));
  if (b.whole == -1) return K_int(0);
  return K_int(a.whole % b.whole +
               (a.whole % b.whole != 0 && (a.whole < 0) != (b.whole < 0) ? b.whole : 0));
}

/* A power; one below 1 only where it is exact. */
FUNCTION K_number K_pow(K_number a, K_number b) {
  K_number r = K_int(1);
  if (a.kind != 1 || b.kind != 1) return K_none();
  if (a.whole == 0) return b.whole < 0 ? K_none() : K_int(b.whole == 0);
  if (a.whole == 1 || a.whole == -1) {
    r = K_int(b.whole % 2 == 0 ? 1 : a.whole);
    return b.whole < 0 ? K_real((double)r.whole) : r;
  }
  if (b.whole > 63 || b.whole < -62) return K_none();
  for (long long i = b.whole < 0 ? -b.whole : b.whole; i > 0; --i) r = K_mul(r, a);
  if (b.whole >= 0 || !r.kind) return r;
  return r.whole % 2 == 0 && (K_abs(r).whole & (K_abs(r).whole - 1)) == 0
             ? K_real(1.0 / (double)r.whole) : K_none();
}

FUNCTION K_number K_invert(K_number a) { return a.kind == 1 ? K_int(~a.whole) : K_none(); }

FUNCTION K_number K_bitand(K_number a, K_number b) {
  return a.kind == 1 && b.kind == 1 ? K_int(a.whole & b.whole) : K_none();
}

FUNCTION K_number K_bitor(K_number a, K_number b) {
  return a.kind == 1 && b.kind == 1 ? K_int(a.whole | b.whole) : K_none();
}

FUNCTION K_number K_bitxor(K_number a, K_number b) {
  return a.kind == 1 && b.kind == 1 ? K_int(a.whole ^ b.whole) : K_none();
}

FUNCTION K_number K_shl(K_number a, K_number b) {
  if (a.kind != 1 || b.kind != 1 || b.whole < 0) return K_none();
  if (a.whole == 0) return a;
  return b.whole < 63 ? K_mul(a, K_int(1LL << b.whole)) : K_none();
}

FUNCTION K_number K_shr(K_number a, K_number b) {
  if (a.kind != 1 || b.kind != 1 || b.whole < 0) return K_none();
  if (b.whole > 62) return K_int(a.whole < 0 ? -1 : 0);
  return K_int(a.whole < 0 ? ~(~a.whole >> b.whole) : a.whole >> b.whole);
}

FUNCTION K_number K_toint(double a) {
  return a >= -9223372036854775808.0 && a < 9223372036854775808.0 ? K_int((long long)a) : K_none();
}

FUNCTION K_number K_trunc(K_number a) { return a.kind == 2 ? K_toint(a.real) : a; }

FUNCTION K_number K_floor(K_number a) { return a.kind == 2 ? K_toint(K_down(a.real)) : a; }

FUNCTION K_number K_ceil(K_number a) { return a.kind == 2 ? K_toint(-K_down(-a.real)) : a; }

/* To the nearest whole number, of two the even one. */
FUNCTION K_number K_round(K_number a) {
  const double below = K_down(a.real), rest = a.real - below;
  if (a.kind != 2) return a;
  if (rest == 0.5) return K_toint(2.0 * K_down(below / 2.0 + 0.5));
  return K_toint(rest > 0.5 ? below + 1.0 : below);
}

FUNCTION K_number K_float(K_number a) { return a.kind ? K_real(K_double(a)) : a; }

/* The square root, rounded once: digits of the root of 2^108 times the number. */
FUNCTION double K_root(double a) {
  unsigned long long digits = 0, root = 0, rest = 0;
  double scale = 1.0 / 18014398509481984.0;
  if (a <= 0.0) return 0.0;
  for (; a >= 4.0; a *= 0.25) scale *= 2.0;
  for (; a < 1.0; a *= 4.0) scale *= 0.5;
  digits = (unsigned long long)(a * 4503599627370496.0);
  for (int i = 0; i < 55; ++i) {
    rest = 4 * rest + (digits >> 52);
    digits = (digits & 4503599627370495ULL) * 4;
    root *= 2;
    if (rest > 2 * root) {
      rest -= 2 * root + 1;
      root += 1;
    }
  }
  return (double)(root | (rest != 0)) * scale;
}

FUNCTION K_number K_sqrt(K_number a) {
  return a.kind && K_double(a) >= 0.0 ? K_real(K_root(K_double(a))) : K_none();
}

/* The logarithm of a power of two; none of other numbers. */
FUNCTION K_number K_log2(K_number a) {
  double x = K_double(a), r = 0.0;
  if (!a.kind || x <= 0.0) return K_none();
  for (; x >= 2.0; x *= 0.5) r += 1.0;
  for (; x < 1.0; x *= 2.0) r -= 1.0;
  return x == 1.0 ? K_real(r) : K_none();
}

/* The logarithm made whole: down (-1), up (1) or towards zero (0); none so near to a power of two
 * that a rounded logarithm would be whole. */
FUNCTION K_number K_log2whole(K_number a, int way) {
  double x = K_double(a);
  long long r = 0;
  if (!a.kind || x <= 0.0) return K_none();
  for (; x >= 2.0; x *= 0.5) r += 1;
  for (; x < 1.0; x *= 2.0) r -= 1;
  if (x == 1.0) return K_int(r);
  if (x - 1.0 < 1e-12 || 2.0 - x < 1e-12) return K_none();
  return K_int(r + (way > 0 || (way == 0 && r < 0)));
}
