;; The inner loop of the resampler: one weighted sum of input samples for each output sample.
;; It is WebAssembly because its 128-bit lanes do four multiplications at once, which the JavaScript
;; engine does not: the same loop in TypeScript takes about ten times as long.
;; `node packages/audio/scripts/build-polyphase.ts` turns this file into polyphase.wasm.
(module
  (memory (export "memory") 64)

  ;; Sum of x[i] * h[i]. `end` is where h ends; its length is a multiple of 16 floats.
  ;; Four independent sums keep the adders busy.
  (func $dot (param $x i32) (param $h i32) (param $end i32) (result f32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $next
      (local.set $a (f32x4.add (local.get $a)
        (f32x4.mul (v128.load (local.get $x)) (v128.load (local.get $h)))))
      (local.set $b (f32x4.add (local.get $b)
        (f32x4.mul (v128.load offset=16 (local.get $x)) (v128.load offset=16 (local.get $h)))))
      (local.set $c (f32x4.add (local.get $c)
        (f32x4.mul (v128.load offset=32 (local.get $x)) (v128.load offset=32 (local.get $h)))))
      (local.set $d (f32x4.add (local.get $d)
        (f32x4.mul (v128.load offset=48 (local.get $x)) (v128.load offset=48 (local.get $h)))))
      (local.set $x (i32.add (local.get $x) (i32.const 64)))
      (br_if $next (i32.lt_u (local.tee $h (i32.add (local.get $h) (i32.const 64))) (local.get $end))))
    (local.set $a (f32x4.add
      (f32x4.add (local.get $a) (local.get $b))
      (f32x4.add (local.get $c) (local.get $d))))
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
      (f32.add (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))

  ;; Writes `count` output samples. The position in the input is a whole number of samples ($x) and
  ;; $phase / $phases of one; each output moves it on by $step samples and $carry / $phases.
  ;; $bank holds one row of coefficients for each phase or, where $rows < $phases, $rows + 1 rows
  ;; spread evenly over one input sample, between whose sums the result is interpolated.
  (func (export "convolve")
    (param $x i32) (param $bank i32) (param $rowBytes i32) (param $rows i32)
    (param $phases i32) (param $phase i32) (param $step i32) (param $carry i32)
    (param $out i32) (param $count i32)
    (local $h i32) (local $scaled i32) (local $left i32) (local $sum f32)
    (local.set $step (i32.shl (local.get $step) (i32.const 2)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (if (i32.eq (local.get $rows) (local.get $phases))
          (then
            (local.set $h (i32.add (local.get $bank) (i32.mul (local.get $phase) (local.get $rowBytes))))
            (local.set $sum (call $dot (local.get $x) (local.get $h)
              (i32.add (local.get $h) (local.get $rowBytes)))))
          (else
            (local.set $scaled (i32.mul (local.get $phase) (local.get $rows)))
            (local.set $left (i32.rem_u (local.get $scaled) (local.get $phases)))
            (local.set $h (i32.add (local.get $bank)
              (i32.mul (i32.div_u (local.get $scaled) (local.get $phases)) (local.get $rowBytes))))
            (local.set $sum (call $dot (local.get $x) (local.get $h)
              (i32.add (local.get $h) (local.get $rowBytes))))
            (local.set $h (i32.add (local.get $h) (local.get $rowBytes)))
            (local.set $sum (f32.add (local.get $sum) (f32.mul
              (f32.div (f32.convert_i32_u (local.get $left)) (f32.convert_i32_u (local.get $phases)))
              (f32.sub
                (call $dot (local.get $x) (local.get $h) (i32.add (local.get $h) (local.get $rowBytes)))
                (local.get $sum)))))))
        (f32.store (local.get $out) (local.get $sum))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $x (i32.add (local.get $x) (local.get $step)))
        (local.set $phase (i32.add (local.get $phase) (local.get $carry)))
        (if (i32.ge_u (local.get $phase) (local.get $phases))
          (then
            (local.set $phase (i32.sub (local.get $phase) (local.get $phases)))
            (local.set $x (i32.add (local.get $x) (i32.const 4)))))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))))
