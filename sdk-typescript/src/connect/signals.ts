/** SIGINT and SIGTERM, where there is a process: the first asks to stop, a second one ends it at once. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** Let signals call `stop`; what is returned takes that back. */
export function stoppingBy(stop: () => void): () => void {
  if (typeof process === 'undefined' || typeof process.on !== 'function') return () => undefined;
  let came = false;
  const take = (signal: keyof typeof SIGNALS): void => {
    if (came) process.exit(128 + SIGNALS[signal]);
    came = true;
    stop();
  };
  process.on('SIGINT', take).on('SIGTERM', take);
  return () => {
    process.off('SIGINT', take).off('SIGTERM', take);
  };
}
