package translate

// llamaSampling are the fields by which a request shapes how llama-server chooses tokens.
var llamaSampling = func() map[string]bool {
	names := map[string]bool{}
	for name := range samplingNumbers {
		names[name] = true
	}
	for name := range samplingOthers {
		names[name] = true
	}
	return names
}()

// llamaChatFields are all fields of a chat request that llama-server is sent. The others are left out: it has many more, by
// which a client could take another's slot, read files or keep the engine busy for hours.
var llamaChatFields = func() map[string]bool {
	names := map[string]bool{
		"messages": true, "tools": true, "tool_choice": true, "parallel_tool_calls": true, "response_format": true,
		"logprobs": true, "reasoning_effort": true, "chat_template_kwargs": true, "timings_per_token": true,
		"add_generation_prompt": true, "continue_final_message": true,
	}
	for name := range llamaSampling {
		names[name] = true
	}
	return names
}()

// llamaTextFields are all fields of a request for text completions that llama-server is sent as the client wrote them.
var llamaTextFields = func() map[string]bool {
	names := map[string]bool{}
	for name := range llamaSampling {
		names[name] = true
	}
	for _, name := range append([]string{"seed", "n_probs", "top_logprobs", "reasoning_format", "reasoning_budget_message"}, limits...) {
		delete(names, name) // read, and written anew where they apply
	}
	return names
}()

// Drops names the fields of a chat request that the engine isn't sent.
func (LlamaServer) Drops(body *Body, chat *Chat) []string {
	e := chat.edit.Only(llamaChatFields)
	return e.Dropped(body)
}
