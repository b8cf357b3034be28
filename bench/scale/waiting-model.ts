// Loaded before the server by this bench alone: puts waiting-runtime.ts in the place of the ONNX runtime.
import { registerHooks } from 'node:module';

const { href } = new URL('./waiting-runtime.ts', import.meta.url);
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'onnxruntime-node' ? { url: href, shortCircuit: true } : next(specifier, context),
});
