package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// ChatRequest is the body of POST /api/v1/chat.
type ChatRequest struct {
	Model         string   `json:"model"`
	Input         any      `json:"input"` // a string, or a []ChatInput
	System        *string  `json:"system_prompt,omitempty"`
	Integrations  []string `json:"integrations,omitempty"` // MCP servers, as mcp/NAME
	Reasoning     string   `json:"reasoning,omitempty"`
	Temperature   *float64 `json:"temperature,omitempty"`
	ContextLength int      `json:"context_length,omitempty"` // if the request loads the model
	TTL           *int     `json:"ttl,omitempty"`            // seconds, if the request loads the model
	Previous      string   `json:"previous_response_id,omitempty"`
	Store         bool     `json:"store"`
	StorePartial  bool     `json:"store_partial,omitempty"` // also the beginning of an answer that is interrupted
	Stream        bool     `json:"stream"`
}

// ChatInput is a part of what the user says.
type ChatInput struct {
	Type    string `json:"type"`               // message, image or audio
	Content string `json:"content,omitempty"`  // of a message
	DataURL string `json:"data_url,omitempty"` // of an image or a recording
}

// ChatEvent is an event of a chat's stream. Its type determines which fields are set.
type ChatEvent struct {
	Type     string     `json:"type"`
	Content  string     `json:"content"`     // of message.delta and reasoning.delta
	Progress float64    `json:"progress"`    // 0 to 1, of model_load.progress and prompt_processing.progress
	Response string     `json:"response_id"` // of chat.start, if the beginning of the answer would be stored
	Error    Fault      `json:"error"`
	Result   ChatResult `json:"result"` // of chat.end

	// Of tool_call.start, .arguments and .success
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // an object; not of .start
	Output    string          `json:"output"`    // of .success: JSON, the content array of the tool's result

	// Of tool_call.failure
	Reason  string     `json:"reason"`
	Invalid FailedCall `json:"metadata"`
}

// FailedCall is a call that wasn't made.
type FailedCall struct {
	Tool      string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"` // if they are what is wrong
}

// ChatResult is the result of a chat.
type ChatResult struct {
	Response string `json:"response_id"` // empty if the response wasn't stored
	Stats    struct {
		Input       int     `json:"input_tokens"`
		Output      int     `json:"total_output_tokens"`
		Reasoning   int     `json:"reasoning_output_tokens"`
		PerSecond   float64 `json:"tokens_per_second"`
		FirstToken  float64 `json:"time_to_first_token_seconds"`
		LoadSeconds float64 `json:"model_load_time_seconds"`
	} `json:"stats"`
}

// Chat sends a message to a model, and calls each for the events of the answer. It returns an error in the stream after its end,
// unless the answer went on: then it is the failure of a tool's server, and an event as any other.
func (c *Client) Chat(ctx context.Context, request ChatRequest, each func(ChatEvent) error) (ChatResult, error) {
	request.Stream = true
	var result ChatResult
	var fault *ChatEvent
	ended := false
	err := c.Stream(ctx, http.MethodPost, "/api/v1/chat", request, decoded(func(event ChatEvent) error {
		if event.Type == "chat.end" {
			ended, result = true, event.Result
			return ErrStop
		}
		isOfTool := fault != nil && (fault.Error.Type == "mcp_connection_error" || fault.Error.Type == "plugin_connection_error")
		if isOfTool { // a server of tools failed, and the chat goes on
			survived := *fault
			fault = nil
			if err := each(survived); err != nil {
				return err
			}
		}
		if event.Type == "error" {
			fault = &event
			return nil
		}
		return each(event)
	}))
	switch {
	case err != nil:
		return result, err
	case fault != nil:
		return result, fault.Error.Err()
	case !ended:
		return result, ErrCut
	}
	return result, nil
}

// ChatWhole sends a message to a model, and returns the JSON of the answer.
func (c *Client) ChatWhole(ctx context.Context, request ChatRequest) (json.RawMessage, error) {
	request.Stream = false
	return send[json.RawMessage](ctx, c, http.MethodPost, "/api/v1/chat", request)
}

// Response returns a stored response of the native chat.
func (c *Client) Response(ctx context.Context, id string) (resource.Response, error) {
	return get[resource.Response](ctx, c, "/api/v1/responses/"+url.PathEscape(id))
}
