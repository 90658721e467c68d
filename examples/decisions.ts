/** Approvals in messages of OpenAI's format: which calls of an answer ask for one, and the message that decides it. */

export const TOOL = 'client_requestApproval';

export type Option = 'once' | 'session' | 'always' | 'edit' | 'deny';

/** What a call asks for. */
export interface Ask {
  approval_id: string;
  tool: string;
  /** The whole input that would run, with secrets masked. */
  arguments: Record<string, unknown>;
  /** The question to show. */
  message: string;
  options: Option[];
  input_sha256: string;
  expires_at: string;
}

export interface Call {
  id: string;
  function?: { name: string; arguments: string };
}

export interface More {
  scope?: 'once' | 'session' | 'always';
  expires_in_seconds?: number;
  /** With approve: the whole input that runs instead. */
  arguments?: Record<string, unknown>;
  /** With deny: the reason, for the model. */
  message?: string;
}

export interface ToolMessage {
  role: 'tool';
  tool_call_id: string;
  content: string;
}

/** Return what an answer's message asks for, by the ids of its calls. */
export function asks(message: { tool_calls?: Call[] | null }): Map<string, Ask> {
  const calls = (message.tool_calls ?? []).filter((call) => call.function?.name === TOOL);
  return new Map(calls.map((call) => [call.id, JSON.parse(call.function!.arguments) as Ask]));
}

/** Return the message that decides a call. */
export function decision(callId: string, decided: 'approve' | 'deny', more: More = {}): ToolMessage {
  return { role: 'tool', tool_call_id: callId, content: JSON.stringify({ decision: decided, ...more }) };
}
