/**
 * Model Context Protocol servers and clients on a native engine.
 *
 * @packageDocumentation
 */
export { ActionAnswer } from './actions';
export type { ActionOptions, BreakerPolicy, RetryPolicy } from './actions';
export type { Auth } from './address';
export type { SamplingOutput } from './answering';
export type { StartOptions } from './calls';
export type { Steps } from './attempt';
export type { Call, CallOf, Middleware, Next, Replies } from './call';
export { External, Front } from './chain';
export type { ExternalOptions, FrontOptions } from './chain';
export type { ChainDirection, ChainMessage, ChainMiddleware, ChainNext } from './chainmiddleware';
export { Client } from './client';
export type { Answers, Asked, ClientOptions, CompletionTarget, ConnectOptions, SpawnOptions } from './client';
export type { Completer } from './complete';
export { audio, Block, image, Json, json, link, prompt, resource, text } from './content';
export type { Context } from './context';
export type {
    ActionNotes,
    Approve,
    AuditEvent,
    AuditQueue,
    Clean,
    ConsentProxy,
    Granted,
    Issuer,
    Jwt,
    JwtKey,
    Patterns,
    Policy,
    Profile,
    PromptDefinition,
    References,
    ResourceDefinition,
    ResourceServer,
    ResourceTemplateDefinition,
    RunOptions,
    RunReport,
    ServerOptions,
    TaskLimits,
    ToolDefinition,
    Upstream
} from './definitions';
export type { EndpointOptions, ServeOptions } from './endpoint';
export { ActionError, McpError, ProtocolError, ToolError } from './errors';
export type { ActionErrorDetails, CarrierFault, ErrorCode, LoginStep } from './errors';
export type { ClientEvents } from './events';
export type { Handler } from './handler';
export { Results } from './resultcache';
export type { Listening } from './listening';
export type { ListOptions } from './lists';
export type { Logger, LogRecord } from './logger';
export { oauth } from './login';
export type { AssertionRequest, AuthorizationPage, CredentialStore, DeviceCode, LoginCall, OAuth, OAuthOptions } from './login';
export type { Integers } from './numbers';
export type { Endpoint } from './mount';
export { PermissionManager } from './permissions';
export type { Exit } from './options';
export { Pool } from './pool';
export type { PoolClientOptions, PoolCounts, PoolOptions, PoolTarget } from './pool';
export type * from './protocol';
export type { AskOptions } from './questions';
export type { RequestOptions } from './requests';
export type { PromptOutput, ResourceOutput, ToolOutput } from './results';
export { Approval, Breaker, CallReports, Masking, Pins, Prefix, Retry, toolPin } from './rules';
export type { ApprovalCall, ApprovalOptions, BreakerOptions, MaskingOptions, PinDrift, PinsOptions, RetryOptions, Rule, UpstreamCall } from './rules';
export type { Described, Schema, Shape, StandardSchema } from './schema';
export { Server } from './server';
export type { Counts, Serving } from './serving';
export type { Skill, SkillFile, Skills } from './skills';
export type { TaskInfo, TaskStatus, ToolTask } from './task';
export type { Credentials, Principal, Verifier } from './verifier';
export type { RunAtOptions } from './workers';
