import { InferenceSession } from 'onnxruntime-node';

/** One thread per session: the pool provides the parallelism. Threads must not spin while they wait. */
export function openSession(modelPath: string, threads = 1): Promise<InferenceSession> {
  return InferenceSession.create(modelPath, {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Windows vary in length: a cached plan per length would cost 35 MB a thread and bring no speed.
    enableMemPattern: false,
    extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
  });
}
