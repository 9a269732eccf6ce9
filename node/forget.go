package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

const (
	// sweepEvery is how often saved states are compared with the store. What requests to this server delete is forgotten at once;
	// this is for tokens that expire, and for what other servers and commands delete.
	sweepEvery   = time.Minute
	sweepTimeout = 10 * time.Second // bounds the time that the store may take to answer
	// sweepAge is the age of a state from which on its conversation must be stored. The state of an answer's first round may be saved
	// long before the answer is complete and stored.
	sweepAge = time.Hour
)

// DeleteTurn deletes a turn, see [store.Store.Delete], and all states of its conversation, each of which has the text of all turns.
func (st *Stores) DeleteTurn(ctx context.Context, t *store.Turn) error {
	if err := st.Get().Delete(ctx, t.Owner, t.ID); err != nil {
		return err
	}
	st.forgetConversations([]string{t.Family})
	return nil
}

// DeleteConversation deletes a conversation of an owner; see [store.Store.DeleteConversation]. Its states are forgotten.
func (st *Stores) DeleteConversation(ctx context.Context, owner, id string) error {
	if err := st.Get().DeleteConversation(ctx, owner, id); err != nil {
		return err
	}
	st.forgetConversations([]string{id})
	return nil
}

// forgetConversations deletes the states of conversations, and has no more of them saved. So do the other functions here. The
// supervisor is told first: it stops saving what the store of states would then have to delete.
func (st *Stores) forgetConversations(families []string) {
	for _, id := range families {
		st.supervisor.Handle(schedule.Forgot{Conversation: id})
		st.warm.DeleteConversation(id)
	}
}

func (st *Stores) forgetOwner(id string) {
	st.supervisor.Handle(schedule.Forgot{Owner: id})
	st.warm.DeleteOwner(id)
}

// forgetCold deletes the states of the models whose settings say that none are kept.
func (st *Stores) forgetCold(s *Settings) {
	for name, ms := range s.Models {
		if ms.Warm == nil || *ms.Warm {
			continue
		}
		if m, err := st.names.lookup(st.ctx, name); err == nil {
			st.supervisor.Handle(schedule.Forgot{Key: m.Key})
			st.ClearWarm(func(key, _ string) bool { return key == m.Key })
		}
	}
}

// sweep deletes the states whose token or conversation there is no more.
func (st *Stores) sweep() {
	s, states := st.Get(), st.warm.List()
	if s == nil || len(states) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(st.ctx, sweepTimeout)
	defer cancel()
	err := st.sweepOwners(ctx, s, states)
	if err == nil {
		err = st.sweepConversations(ctx, s, states)
	}
	if err != nil && st.ctx.Err() == nil {
		st.log.Warn("can't check whether saved states of conversations are still to be kept", "error", err)
	}
}

// sweepOwners deletes the states of tokens that were revoked or have expired.
func (st *Stores) sweepOwners(ctx context.Context, s *store.Store, states []warm.Listed) error {
	gone := map[string]bool{}
	for _, state := range states {
		if access.IsTokenID(state.Owner) {
			gone[state.Owner] = true
		}
	}
	tokens, err := s.TokensByID(ctx, slices.Collect(maps.Keys(gone)))
	if err != nil {
		return err
	}
	now := time.Now()
	for _, t := range tokens {
		if t.Expires.IsZero() || now.Before(t.Expires) {
			delete(gone, t.ID)
		}
	}
	for id := range gone {
		st.forgetOwner(id)
	}
	return nil
}

// sweepConversations deletes the states of conversations that were deleted as a whole.
func (st *Stores) sweepConversations(ctx context.Context, s *store.Store, states []warm.Listed) error {
	gone := map[string]bool{}
	for _, state := range states {
		if state.Conversation != "" && time.Since(state.Created) > sweepAge {
			gone[state.Conversation] = true
		}
	}
	stored, err := s.Families(ctx, slices.Collect(maps.Keys(gone)))
	if err != nil {
		return err
	}
	for _, id := range stored {
		delete(gone, id)
	}
	st.forgetConversations(slices.Collect(maps.Keys(gone)))
	return nil
}

// ClearWarm deletes the saved states of the models and owners that match. It returns how many they were, and their bytes. What engines
// hold in their slots is saved again after the next request for it.
func (st *Stores) ClearWarm(match func(key, owner string) bool) (states int, bytes int64) {
	states, bytes = st.warm.Clear(func(s *warm.Listed) bool { return match(s.Model, s.Owner) })
	st.supervisor.Handle(schedule.Cleared{Match: match})
	return states, bytes
}
