import { InferenceSession } from 'onnxruntime-node';

/** One thread per session: the threads of the pool are the parallelism, and none of them may spin while it waits. */
export function openSession(modelPath: string, threads = 1): Promise<InferenceSession> {
  return InferenceSession.create(modelPath, {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Windows vary in length, and a plan kept for each length would only hold memory: 35 MB a thread, no speed.
    enableMemPattern: false,
    extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
  });
}
