import Anthropic from '@anthropic-ai/sdk';

export interface Published {
  message: Anthropic.Message;
  event: Anthropic.RawMessageStreamEvent | { type: 'ping' };
  count: Anthropic.MessageTokensCount;
  model: Anthropic.ModelInfo;
  error: Anthropic.ErrorResponse;
}
