/**
 * Servers of the official SDKs on the engine.
 *
 * @packageDocumentation
 */
export { accelerate, Accelerated } from './accelerate';
export type { AccelerationReport } from './accelerate';
export type { SdkServer } from './shapes';
