import OpenAI from 'openai';

export interface Published {
  chat: OpenAI.Chat.ChatCompletion;
  chunk: OpenAI.Chat.ChatCompletionChunk;
  completion: OpenAI.Completion;
  embeddings: OpenAI.CreateEmbeddingResponse;
  model: OpenAI.Model;
  models: { object: 'list'; data: OpenAI.Model[] };
  error: { error: OpenAI.ErrorObject };
  response: OpenAI.Responses.Response;
  responseEvent: OpenAI.Responses.ResponseStreamEvent;
  responseItems: OpenAI.Responses.ResponseItemList;
  compacted: OpenAI.Responses.CompactedResponse;
}
