package responses

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// unstoredResponse is the last response of a WebSocket, if it isn't stored: with "store": false, only the connection can continue it. Its
// conversation counts as that of a request's body does.
type unstoredResponse struct {
	id    string // empty: there is none
	head  string // the id of the stored response that the conversation began with; empty: there is none
	items []translate.Item
	claim access.BodyClaim

	isContinued bool // by the request that is being answered
}

func (u *unstoredResponse) forget() {
	u.claim.Release()
	*u = unstoredResponse{isContinued: u.isContinued}
}

// unstored returns the response with an id if the call's WebSocket has it.
func unstored(c *endpoint.Call, id string) *unstoredResponse {
	if s := socketOf(c); s != nil && id != "" && s.unstored.id == id {
		return &s.unstored
	}
	return nil
}

// keep keeps the response for the next request on the WebSocket. If there is no memory for it, it can't be continued, and the client sends the
// whole conversation again.
func (r *run) keep() {
	s := socketOf(r.Call)
	if status := r.out.Answer.Status(); s == nil || status != responses.Completed && status != responses.Incomplete {
		return
	}
	s.unstored.forget()
	if r.ask.Store {
		return
	}
	items := translate.Settled(slices.Concat(r.conversation, r.out.Answer.Items()))
	claim := r.Call.Node.Access.Bodies.Claim(endpoint.Payer(r.Call))
	if claim.Grow(sizeOf(items)) != nil {
		return
	}
	s.unstored = unstoredResponse{id: r.out.Answer.ID, head: r.Request.Demand.Conversation, items: items, claim: claim}
}
