// Preloaded only by this bench: replaces the ONNX runtime with waiting-runtime.ts.
import { registerHooks } from 'node:module';

const { href } = new URL('./waiting-runtime.ts', import.meta.url);
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'onnxruntime-node' ? { url: href, shortCircuit: true } : next(specifier, context),
});
