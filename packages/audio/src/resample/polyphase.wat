;; The inner loops of decoding: 16-bit samples to floating point, and the resampler's weighted sums.
;; WebAssembly has 128-bit SIMD, four multiplications at once. The same loops in TypeScript take about ten times as long.
;; `node packages/audio/scripts/build-polyphase.ts` compiles this file to polyphase.wasm.
(module
  (memory (export "memory") 256)

  ;; Converts $count 16-bit samples to floats of -1..1, eight at a time: overwrites up to seven floats after the last.
  (func (export "widen") (param $from i32) (param $to i32) (param $count i32)
    (local $end i32) (local $values v128) (local $scale v128)
    (local.set $end (i32.add (local.get $from) (i32.shl (local.get $count) (i32.const 1))))
    (local.set $scale (f32x4.splat (f32.const 0x1p-15)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (local.set $values (v128.load (local.get $from)))
        (v128.store (local.get $to) (f32x4.mul (local.get $scale)
          (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $values)))))
        (v128.store offset=16 (local.get $to) (f32x4.mul (local.get $scale)
          (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $values)))))
        (local.set $from (i32.add (local.get $from) (i32.const 16)))
        (local.set $to (i32.add (local.get $to) (i32.const 32)))
        (br $next))))

  ;; De-interleaves $pairs pairs of samples: the first of each to $even, the second to $odd. Four pairs at a time.
  (func $part (param $x i32) (param $pairs i32) (param $even i32) (param $odd i32)
    (local $a v128) (local $b v128) (local $end i32)
    (local.set $end (i32.add (local.get $even) (i32.shl (local.get $pairs) (i32.const 2))))
    (loop $next
      (local.set $a (v128.load (local.get $x)))
      (local.set $b (v128.load offset=16 (local.get $x)))
      (v128.store (local.get $even)
        (i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27 (local.get $a) (local.get $b)))
      (v128.store (local.get $odd)
        (i8x16.shuffle 4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31 (local.get $a) (local.get $b)))
      (local.set $x (i32.add (local.get $x) (i32.const 32)))
      (local.set $odd (i32.add (local.get $odd) (i32.const 16)))
      (br_if $next
        (i32.lt_u (local.tee $even (i32.add (local.get $even) (i32.const 16))) (local.get $end)))))

  ;; Halves the rate with a half-band filter of $taps coefficients at $bank. Only the middle one and every second one are
  ;; not zero, so the middle one applies to odd samples and the others to even samples. Writes $count outputs, 32 at a
  ;; time: overwrites up to 31 after the last. $scratch must be as large as the input.
  (func (export "halve")
    (param $x i32) (param $bank i32) (param $taps i32) (param $scratch i32) (param $out i32) (param $count i32)
    (local $pairs i32) (local $odd i32) (local $at i32) (local $end i32) (local $from i32) (local $h v128)
    (local $a0 v128) (local $a1 v128) (local $a2 v128) (local $a3 v128) (local $a4 v128) (local $a5 v128) (local $a6 v128) (local $a7 v128)
    (local.set $pairs (i32.add (local.get $count) (i32.add (i32.shr_u (local.get $taps) (i32.const 1)) (i32.const 32))))
    (local.set $odd (i32.add (local.get $scratch) (i32.shl (i32.add (local.get $pairs) (i32.const 4)) (i32.const 2))))
    (call $part (local.get $x) (local.get $pairs) (local.get $scratch) (local.get $odd))
    ;; The middle coefficient has index $taps / 2 - 1 in the row, and its sample is the ($taps / 4 - 1)th odd one.
    (local.set $odd (i32.add (local.get $odd) (i32.sub (local.get $taps) (i32.const 4))))
    (local.set $end (i32.add (local.get $bank) (i32.shl (local.get $taps) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.le_s (local.get $count) (i32.const 0)))
        (local.set $h (v128.load32_splat (i32.add (local.get $bank)
          (i32.sub (i32.shl (local.get $taps) (i32.const 1)) (i32.const 4)))))
        (local.set $from (local.get $odd))
        (local.set $a0 (f32x4.mul (local.get $h) (v128.load offset=0 (local.get $from))))
        (local.set $a1 (f32x4.mul (local.get $h) (v128.load offset=16 (local.get $from))))
        (local.set $a2 (f32x4.mul (local.get $h) (v128.load offset=32 (local.get $from))))
        (local.set $a3 (f32x4.mul (local.get $h) (v128.load offset=48 (local.get $from))))
        (local.set $a4 (f32x4.mul (local.get $h) (v128.load offset=64 (local.get $from))))
        (local.set $a5 (f32x4.mul (local.get $h) (v128.load offset=80 (local.get $from))))
        (local.set $a6 (f32x4.mul (local.get $h) (v128.load offset=96 (local.get $from))))
        (local.set $a7 (f32x4.mul (local.get $h) (v128.load offset=112 (local.get $from))))
        (local.set $from (local.get $scratch))
        (local.set $at (local.get $bank))
        (loop $tap
          (local.set $h (v128.load32_splat (local.get $at)))
          (local.set $a0 (f32x4.relaxed_madd (v128.load offset=0 (local.get $from)) (local.get $h) (local.get $a0)))
          (local.set $a1 (f32x4.relaxed_madd (v128.load offset=16 (local.get $from)) (local.get $h) (local.get $a1)))
          (local.set $a2 (f32x4.relaxed_madd (v128.load offset=32 (local.get $from)) (local.get $h) (local.get $a2)))
          (local.set $a3 (f32x4.relaxed_madd (v128.load offset=48 (local.get $from)) (local.get $h) (local.get $a3)))
          (local.set $a4 (f32x4.relaxed_madd (v128.load offset=64 (local.get $from)) (local.get $h) (local.get $a4)))
          (local.set $a5 (f32x4.relaxed_madd (v128.load offset=80 (local.get $from)) (local.get $h) (local.get $a5)))
          (local.set $a6 (f32x4.relaxed_madd (v128.load offset=96 (local.get $from)) (local.get $h) (local.get $a6)))
          (local.set $a7 (f32x4.relaxed_madd (v128.load offset=112 (local.get $from)) (local.get $h) (local.get $a7)))
          (local.set $from (i32.add (local.get $from) (i32.const 4)))
          (br_if $tap (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (local.get $end))))
        (v128.store offset=0 (local.get $out) (local.get $a0))
        (v128.store offset=16 (local.get $out) (local.get $a1))
        (v128.store offset=32 (local.get $out) (local.get $a2))
        (v128.store offset=48 (local.get $out) (local.get $a3))
        (v128.store offset=64 (local.get $out) (local.get $a4))
        (v128.store offset=80 (local.get $out) (local.get $a5))
        (v128.store offset=96 (local.get $out) (local.get $a6))
        (v128.store offset=112 (local.get $out) (local.get $a7))
        (local.set $odd (i32.add (local.get $odd) (i32.const 128)))
        (local.set $scratch (i32.add (local.get $scratch) (i32.const 128)))
        (local.set $out (i32.add (local.get $out) (i32.const 128)))
        (local.set $count (i32.sub (local.get $count) (i32.const 32)))
        (br $next))))

  ;; The sum of the lanes of two vectors.
  (func $total (param $a v128) (param $b v128) (result f32)
    (local.set $a (f32x4.add (local.get $a) (local.get $b)))
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
      (f32.add (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))

  ;; Sum of x[i] * h[i]. $end is where h ends; its length is a multiple of 8 floats.
  (func $dot (param $x i32) (param $h i32) (param $end i32) (result f32)
    (local $a v128) (local $b v128)
    (loop $next
      (local.set $a (f32x4.relaxed_madd
        (v128.load (local.get $x)) (v128.load (local.get $h)) (local.get $a)))
      (local.set $b (f32x4.relaxed_madd
        (v128.load offset=16 (local.get $x)) (v128.load offset=16 (local.get $h)) (local.get $b)))
      (local.set $x (i32.add (local.get $x) (i32.const 32)))
      (br_if $next (i32.lt_u (local.tee $h (i32.add (local.get $h) (i32.const 32))) (local.get $end))))
    (call $total (local.get $a) (local.get $b)))

  ;; The same for four positions of the input, $apart bytes from each other. Loading h takes most of the time, so it is
  ;; loaded once for all four. Sums in the same order as $dot, so the results are identical.
  (func $dots (param $x i32) (param $apart i32) (param $h i32) (param $end i32)
    (param $out i32) (param $outApart i32)
    (local $y i32) (local $z i32) (local $w i32) (local $h0 v128) (local $h1 v128)
    (local $xa v128) (local $xb v128) (local $ya v128) (local $yb v128)
    (local $za v128) (local $zb v128) (local $wa v128) (local $wb v128)
    (local.set $y (i32.add (local.get $x) (local.get $apart)))
    (local.set $z (i32.add (local.get $y) (local.get $apart)))
    (local.set $w (i32.add (local.get $z) (local.get $apart)))
    (loop $next
      (local.set $h0 (v128.load (local.get $h)))
      (local.set $h1 (v128.load offset=16 (local.get $h)))
      (local.set $xa (f32x4.relaxed_madd (v128.load (local.get $x)) (local.get $h0) (local.get $xa)))
      (local.set $xb (f32x4.relaxed_madd (v128.load offset=16 (local.get $x)) (local.get $h1) (local.get $xb)))
      (local.set $ya (f32x4.relaxed_madd (v128.load (local.get $y)) (local.get $h0) (local.get $ya)))
      (local.set $yb (f32x4.relaxed_madd (v128.load offset=16 (local.get $y)) (local.get $h1) (local.get $yb)))
      (local.set $za (f32x4.relaxed_madd (v128.load (local.get $z)) (local.get $h0) (local.get $za)))
      (local.set $zb (f32x4.relaxed_madd (v128.load offset=16 (local.get $z)) (local.get $h1) (local.get $zb)))
      (local.set $wa (f32x4.relaxed_madd (v128.load (local.get $w)) (local.get $h0) (local.get $wa)))
      (local.set $wb (f32x4.relaxed_madd (v128.load offset=16 (local.get $w)) (local.get $h1) (local.get $wb)))
      (local.set $h0 (v128.load offset=32 (local.get $h)))
      (local.set $h1 (v128.load offset=48 (local.get $h)))
      (local.set $xa (f32x4.relaxed_madd (v128.load offset=32 (local.get $x)) (local.get $h0) (local.get $xa)))
      (local.set $xb (f32x4.relaxed_madd (v128.load offset=48 (local.get $x)) (local.get $h1) (local.get $xb)))
      (local.set $ya (f32x4.relaxed_madd (v128.load offset=32 (local.get $y)) (local.get $h0) (local.get $ya)))
      (local.set $yb (f32x4.relaxed_madd (v128.load offset=48 (local.get $y)) (local.get $h1) (local.get $yb)))
      (local.set $za (f32x4.relaxed_madd (v128.load offset=32 (local.get $z)) (local.get $h0) (local.get $za)))
      (local.set $zb (f32x4.relaxed_madd (v128.load offset=48 (local.get $z)) (local.get $h1) (local.get $zb)))
      (local.set $wa (f32x4.relaxed_madd (v128.load offset=32 (local.get $w)) (local.get $h0) (local.get $wa)))
      (local.set $wb (f32x4.relaxed_madd (v128.load offset=48 (local.get $w)) (local.get $h1) (local.get $wb)))
      (local.set $x (i32.add (local.get $x) (i32.const 64)))
      (local.set $y (i32.add (local.get $y) (i32.const 64)))
      (local.set $z (i32.add (local.get $z) (i32.const 64)))
      (local.set $w (i32.add (local.get $w) (i32.const 64)))
      (br_if $next (i32.lt_u (local.tee $h (i32.add (local.get $h) (i32.const 64))) (local.get $end))))
    (f32.store (local.get $out) (call $total (local.get $xa) (local.get $xb)))
    (local.set $out (i32.add (local.get $out) (local.get $outApart)))
    (f32.store (local.get $out) (call $total (local.get $ya) (local.get $yb)))
    (local.set $out (i32.add (local.get $out) (local.get $outApart)))
    (f32.store (local.get $out) (call $total (local.get $za) (local.get $zb)))
    (local.set $out (i32.add (local.get $out) (local.get $outApart)))
    (f32.store (local.get $out) (call $total (local.get $wa) (local.get $wb))))

  ;; Writes $count outputs. The position in the input is $x plus $phase / $phases of a sample; each output advances it by
  ;; $step samples and $carry / $phases. $bank has one row of coefficients per phase. If $rows < $phases, it has $rows + 1
  ;; rows, spread evenly over one input sample, and the result is interpolated between two of them.
  ;; After a lap of $phases outputs the rows repeat: four laps run in parallel if there are enough outputs.
  (func (export "convolve")
    (param $x i32) (param $bank i32) (param $rowBytes i32) (param $rows i32)
    (param $phases i32) (param $phase i32) (param $step i32) (param $carry i32)
    (param $out i32) (param $count i32)
    (local $h i32) (local $scaled i32) (local $left i32) (local $sum f32)
    (local $lap i32) (local $outLap i32) (local $leftOfLap i32)
    (local.set $lap (i32.shl
      (i32.add (i32.mul (local.get $step) (local.get $phases)) (local.get $carry))
      (i32.const 2)))
    (local.set $outLap (i32.shl (local.get $phases) (i32.const 2)))
    (local.set $step (i32.shl (local.get $step) (i32.const 2)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (if (i32.eq (local.get $rows) (local.get $phases))
          (then
            (local.set $h (i32.add (local.get $bank) (i32.mul (local.get $phase) (local.get $rowBytes))))
            ;; Four laps are 4 * $phases samples, and that is also how many bytes one lap of output takes.
            (if (i32.and (i32.eqz (local.get $leftOfLap)) (i32.ge_u (local.get $count) (local.get $outLap)))
              (then (local.set $leftOfLap (local.get $phases))))
            (if (local.get $leftOfLap)
              (then
                (call $dots (local.get $x) (local.get $lap) (local.get $h)
                  (i32.add (local.get $h) (local.get $rowBytes)) (local.get $out) (local.get $outLap))
                (local.set $leftOfLap (i32.sub (local.get $leftOfLap) (i32.const 1)))
                (local.set $count (i32.sub (local.get $count) (i32.const 3)))
                (if (i32.eqz (local.get $leftOfLap))
                  (then
                    (local.set $x (i32.add (local.get $x) (i32.mul (local.get $lap) (i32.const 3))))
                    (local.set $out (i32.add (local.get $out) (i32.mul (local.get $outLap) (i32.const 3)))))))
              (else
                (f32.store (local.get $out) (call $dot (local.get $x) (local.get $h)
                  (i32.add (local.get $h) (local.get $rowBytes)))))))
          (else
            (local.set $scaled (i32.mul (local.get $phase) (local.get $rows)))
            (local.set $left (i32.rem_u (local.get $scaled) (local.get $phases)))
            (local.set $h (i32.add (local.get $bank)
              (i32.mul (i32.div_u (local.get $scaled) (local.get $phases)) (local.get $rowBytes))))
            (local.set $sum (call $dot (local.get $x) (local.get $h)
              (i32.add (local.get $h) (local.get $rowBytes))))
            (local.set $h (i32.add (local.get $h) (local.get $rowBytes)))
            (f32.store (local.get $out) (f32.add (local.get $sum) (f32.mul
              (f32.div (f32.convert_i32_u (local.get $left)) (f32.convert_i32_u (local.get $phases)))
              (f32.sub
                (call $dot (local.get $x) (local.get $h) (i32.add (local.get $h) (local.get $rowBytes)))
                (local.get $sum)))))))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $x (i32.add (local.get $x) (local.get $step)))
        (local.set $phase (i32.add (local.get $phase) (local.get $carry)))
        (if (i32.ge_u (local.get $phase) (local.get $phases))
          (then
            (local.set $phase (i32.sub (local.get $phase) (local.get $phases)))
            (local.set $x (i32.add (local.get $x) (i32.const 4)))))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))))
