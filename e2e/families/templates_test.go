package families

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// family is what models of one kind have in common.
type family struct {
	shape    randommodel.Shape
	template string
}

// small is a shape with few layers, for models that aren't slow.
func small(s randommodel.Shape) randommodel.Shape {
	if s.Layers = 1; s.Architecture == randommodel.Hybrid.Architecture {
		s.Layers = 4 // one of them is of attention
	}
	return s
}

const (
	begin  = "{{ '<|im_start|>' + message.role + '\\n' }}"
	end    = "{{ '<|im_end|>\\n' }}"
	answer = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
	finish = "{% endif %}"

	// hermes says tools and calls in the way that most models do.
	hermesTools = `{% if tools %}<|im_start|>system
Call a function within <tool_call></tool_call>, as {"name": ..., "arguments": ...}. These are the tools: {% for tool in tools %}{{ tool | tojson }}{% endfor %}<|im_end|>
{% endif %}`
	hermesCalls = `{% if message.tool_calls %}{% for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}`
	hermes = hermesTools + "{% for message in messages %}{% if message.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ message.content }}\n</tool_response><|im_end|>\n" +
		"{% else %}" + begin + "{{ message.content or '' }}" + hermesCalls + end + "{% endif %}{% endfor %}"
)

// families have each trait of templates, and each kind of architecture, once.
var families = map[string]family{
	"lmcaddy/plain": {small(randommodel.Recurrent), "{% for message in messages %}" + begin + "{{ message.content }}" + end + "{% endfor %}" + answer + finish},

	"lmcaddy/takes-turns": {small(randommodel.Dense), strings.ReplaceAll(`
{%- if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}
{%- set ns = namespace(n=0) %}
{%- for message in rest %}{% if (message.role == 'user' or message.role == 'assistant') and not message.tool_calls %}
{%- if (message.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('After the optional system message, conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{%- set ns.n = ns.n + 1 %}{% endif %}{% endfor %}
{{- bos_token }}
{%- for message in rest %}
{%- if message.role == 'user' %}
{%- if tools and loop.last %}[AVAILABLE_TOOLS][{% for tool in tools %}{{ tool | tojson }}{% endfor %}][/AVAILABLE_TOOLS]{% endif %}[INST]
{%- if system is defined and loop.last %}{{ system + '\n\n' }}{% endif %}{{ message.content }}[/INST]
{%- elif message.tool_calls %}[TOOL_CALLS][
{%- for call in message.tool_calls %}{% if call.id is not defined or call.id | length != 9 %}{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{% endif %}
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}, "id": "{{ call.id }}"}{% endfor %}]{{ eos_token }}
{%- elif message.role == 'assistant' %}{{ message.content + eos_token }}
{%- elif message.role == 'tool' %}{% if message.tool_call_id is not defined or message.tool_call_id | length != 9 %}{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}{% endif %}
[TOOL_RESULTS]{"content": {{ message.content }}, "call_id": "{{ message.tool_call_id }}"}[/TOOL_RESULTS]
{%- else %}{{ raise_exception('Only user and assistant roles are supported, with the exception of an initial optional system message!') }}{% endif %}{% endfor %}`, "\n{%-", "{%-")},

	"lmcaddy/two-roles": {small(randommodel.SlidingWindow), `{{ bos_token }}{% for message in messages %}
{%- if message.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{%- if message.role == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = message.role %}{% endif %}
{{- '<|im_start|>' + role + '\n' + message.content | trim + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>model\n' }}{% endif %}`},

	"lmcaddy/switch": {small(randommodel.Hybrid), hermes + answer + "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}" + finish},

	// The engine looks for enable_thinking, and leaves the thoughts of this one in the text.
	"lmcaddy/left-thoughts": {small(randommodel.Dense), hermes + answer + "{% if thinking is defined and thinking %}{{ '<think>' }}{% else %}{{ '</think>' }}{% endif %}" + finish},

	"lmcaddy/argument": {small(randommodel.Mixture), "{% if thinking %}<|im_start|>system\nThink step by step before the answer, within <think></think>, and write the answer within <response></response>.<|im_end|>\n{% endif %}" + hermes + answer + finish},

	"lmcaddy/system-text": {small(randommodel.Dense), "{% set ns = namespace(thinks=true) %}{% for message in messages %}{% if message.role == 'system' and '/no_think' in message.content %}{% set ns.thinks = false %}{% endif %}{% endfor %}" +
		strings.Replace(hermes, "{{ message.content or '' }}", "{{ (message.content or '').replace('/no_think', '').replace('/think', '') }}", 1) +
		answer + "{% if ns.thinks %}{{ '<think>\\n' }}{% else %}{{ '<think></think>' }}{% endif %}" + finish},

	"lmcaddy/effort": {small(randommodel.Dense), "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}<|im_start|>system\nReasoning: {{ reasoning_effort }}<|im_end|>\n" + hermes + answer + finish},

	"lmcaddy/budget": {small(randommodel.Dense), "{% if thinking_budget is defined and thinking_budget is not none %}<|im_start|>system\nYou may think for {{ thinking_budget }} tokens.{% if thinking_budget == 0 %} Answer at once, without thinking.{% endif %}<|im_end|>\n{% endif %}" +
		strings.Replace(hermes, "{{ message.content or '' }}", "{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content or '' }}", 1) +
		answer + "{% if thinking_budget is defined and thinking_budget == 0 %}{{ '<think>' }}{% endif %}" + finish},

	"lmcaddy/early-system": {small(randommodel.Dense), "{% for message in messages %}{% if message.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}{% endfor %}" + hermes + answer + finish},

	"lmcaddy/tagged-calls": {small(randommodel.Mixture), `{% if tools %}<|im_start|>system
# Tools
<tools>{% for tool in tools %}
<function>
<name>{{ tool.function.name }}</name>
<description>{{ tool.function.description }}</description>
<parameters>{{ tool.function.parameters | tojson }}</parameters>
</function>{% endfor %}
</tools>
If you call a function, use this format:
<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
</function>
</tool_call><|im_end|>
{% endif %}{% for message in messages %}{% if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}` + begin + `{{ message.content or '' }}{% if message.tool_calls %}{% for call in message.tool_calls %}
<tool_call>
<function={{ call.function.name }}>
{% for name, value in call.function.arguments | items %}<parameter={{ name }}>
{{ value if value is string else value | tojson }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}{% endif %}` + end + `{% endif %}{% endfor %}` + answer + finish},
}
