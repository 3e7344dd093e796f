/** Agents in TypeScript: be one, and call others, whatever protocol each speaks. */
export { Agent, type AgentOptions } from './agent/agent.js';
export type { JsonSchema, Schema, StandardSchema } from './agent/schema.js';
export type { Handler, Skill, SkillOptions } from './agent/skills.js';
export { tool, type Tool, type ToolOptions } from './agent/tools.js';
export { a2a, type A2A } from './client/a2a.js';
export type { CallOptions } from './client/asking.js';
export { A2AClient, type ClientOptions, type Filters, type SubmitOptions } from './client/client.js';
export { CallHandle } from './client/handles.js';
export type { Fetch } from './client/http.js';
export type { RemoteTool } from './client/remote-tool.js';
export { CallResult, type CallStatus, type FoundAgent, type StreamEvent } from './client/results.js';
export type { Settings } from './client/settings.js';
export { verifySignature, type ReceivedHeaders } from './client/signatures.js';
export { stepResult, type Step } from './client/steps.js';
export { Artifact, Data, File, Message, Text, type FileContent, type Part, type Said } from './content.js';
export * from './errors.js';
export type { Json, JsonObject } from './json.js';
export {
  RunResult,
  type Model,
  type ModelMessage,
  type ModelReply,
  type ModelRequest,
  type Round,
  type ToolCall,
  type ToolSchema,
  type Usage,
} from './run/models.js';
export { Context, type Used } from './work/context.js';
export type { Caller, Reference } from './work/incoming.js';
export type { CallLog, Level, Log } from './work/log.js';
export type { ArtifactOptions } from './work/returned.js';
