package e2e

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// blocking is a tool that runs until its call is cancelled.
type blocking struct {
	started   chan struct{} // gets a value for each call
	cancelled chan struct{} // and when it is cancelled
}

func newBlocking() *blocking { return &blocking{make(chan struct{}, 100), make(chan struct{}, 100)} }

func (b *blocking) run(ctx context.Context, _ gjson.Result) string {
	b.started <- struct{}{}
	<-ctx.Done()
	b.cancelled <- struct{}{}
	return "too late"
}

func TestMCPCall_EndsWhenTheClientDisconnects(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: append(openGates, "mcp_timeout 10m"), Engine: []string{"parallel 1"}})
	for name, isStream := range map[string]bool{"streamed": true, "in one piece": false} {
		t.Run(name, func(t *testing.T) {
			s, b := s.In(t), newBlocking()
			m := harness.StartMCP(t, statusTool(b.run))
			giveUp := s.GoUntil(harness.NativeChatPath, withTools(useStatus, m.Ephemeral("slow")).With("stream", isStream))
			harness.Wait(t, "the tool is called", b.started)
			giveUp()
			harness.Wait(t, "the call is cancelled", b.cancelled)
			if body := s.NativeChat(harness.NativeAsk(capital)); harness.NativeText(body, "message") != paris {
				t.Errorf("after that: %s", body.Raw)
			}
		})
	}
}

// The real server isn't told by its transport: it gets a notification, and goes on counting to itself. The chat is over at once.
func TestMCPCall_OfARealServerIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.WriteMCP(harness.Fields{"everything": everything(h)})
	s := harness.Start(h, harness.Config{LM: openGates})
	s = s.As(created(t, h, "--name", "any"))
	long := withTools("Use trigger-long-running-operation with duration 60 and steps 3", "mcp/everything")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st := s.OpenNativeUntil(ctx, long)
	st.WaitFor("tool_call.arguments")
	cancel()
	st.WaitCut()
	body := s.NativeChat(withTools(useEchoTool, "mcp/everything"))
	wantCalled(t, body, toolCall("echo", map[string]any{"message": "hello world"}, plugin("mcp/everything"), "Echo: hello world"))
	servers := h.MCPServers()
	if len(servers) != 1 {
		t.Fatalf("the server of a cancelled call is not used further: %v", servers)
	}
	servers[0].Kill(t) // or it would count until it is told to end
}

// TestMCPCall_HoldsNoSlot: a tool asks the server that waits for it, for another model, where one model may be loaded, with one slot.
func TestMCPCall_HoldsNoSlot(t *testing.T) {
	t.Parallel()
	s := harness.Start(withTwo(t), harness.Config{LM: append(openGates, "max_loaded 1"), Engine: []string{"parallel 1"}})
	for name, model := range map[string]string{"another model": other, "the same model": harness.Model} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			m := harness.StartMCP(t, statusTool(func(context.Context, gjson.Result) string {
				reply := <-s.Go(harness.ChatPath, harness.Ask(capital).With("model", model))
				if said := reply.Get("choices.0.message.content").Str; reply.Status != http.StatusOK || said != paris {
					return "error: " + reply.Body
				}
				return redRiver
			}))
			wantRiver(t, s.NativeChat(withTools(useStatus, m.Ephemeral("caller"))), "status", ephemeral("caller"))
			s.Engine()
		})
	}
}

// TestMCPCall_WaitingChatsHoldNoSlots: more chats wait for their tools than there are slots, and all of them at a time.
func TestMCPCall_WaitingChatsHoldNoSlots(t *testing.T) {
	t.Parallel()
	const chats = 8
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates, Engine: []string{"parallel 2"}})
	var together sync.WaitGroup
	together.Add(chats)
	m := harness.StartMCP(t, statusTool(func(ctx context.Context, _ gjson.Result) string {
		together.Done()
		all := make(chan struct{})
		go func() {
			together.Wait()
			close(all)
		}()
		select {
		case <-all:
			return redRiver
		case <-ctx.Done():
			return "cancelled"
		}
	}))
	var replies []<-chan harness.Reply
	for range chats {
		replies = append(replies, s.Go(harness.NativeChatPath, withTools(useStatus, m.Ephemeral("all"))))
	}
	for _, reply := range replies {
		r := harness.Wait(t, "an answer", reply).Want(t, http.StatusOK)
		wantRiver(t, r.Get("@this"), "status", ephemeral("all"))
	}
}

func TestMCPCall_TakesNoLongerThanItsTimeout(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: append(openGates, "mcp_timeout 1s")})
	b := newBlocking()
	m := harness.StartMCP(t, statusTool(b.run))
	s.NativeChat(harness.NativeAsk(capital))
	begun := time.Now()
	st := s.NativeStream(withTools(useStatus, m.Ephemeral("slow")))
	if took := time.Since(begun); took < time.Second {
		t.Errorf("it took %s", took)
	}
	if len(st.ServerFaults) == 0 || st.ServerFaults[0].Get("type").Str != "mcp_connection_error" {
		t.Errorf("faults %v", st.ServerFaults)
	}
	harness.Wait(t, "the call is cancelled", b.cancelled)
	if last := st.Result.Get("output.@reverse.0.type").Str; last != "message" {
		t.Errorf("the answer doesn't go on: %s", st.Result.Raw)
	}
}
