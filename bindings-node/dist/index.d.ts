/**
 * Model Context Protocol servers and clients on a native engine.
 *
 * @packageDocumentation
 */
export { Client } from './client';
export type { ClientOptions, Exit, RequestOptions, SpawnOptions } from './client';
export { audio, Block, image, Json, json, link, prompt, resource, text } from './content';
export type { Context } from './context';
export { McpError, ToolError } from './errors';
export type { ErrorCode } from './errors';
export type * from './protocol';
export type { PromptOutput, ResourceOutput, ToolOutput } from './results';
export type { Schema, StandardSchema } from './schema';
export { Server } from './server';
export type { PromptDefinition, ResourceDefinition, RunOptions, RunReport, ServerOptions, ToolDefinition } from './server';
