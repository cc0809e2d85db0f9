/**
 * The engine without threads, sockets or an event loop, for building frameworks and transports.
 *
 * @packageDocumentation
 */
export { Json, json } from '../content';
export { McpError } from '../errors';
export type { Integers } from '../numbers';
export { decode, Decoder, encodeError, encodeNotification, encodeRequest, encodeResponse } from './codec';
export type { DecoderOptions, Framing } from './codec';
export { Connection } from './connection';
export type { ConnectionOptions, Event, SendOptions, Stray } from './connection';
export { Message } from './message';
export type { Id, MessageKind, ReadOptions } from './message';
export { Request } from './request';
export type { FailureKind } from './request';
