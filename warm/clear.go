package warm

// ClearSome deletes the states that match, also those that are being saved. It returns how many they were, and their bytes. match must not
// use the store.
func (s *Store) ClearSome(match func(Listed) bool) (n int, bytes int64) {
	s.mu.Lock()
	return s.deleteAll(func(r *record) bool {
		return match(Listed{r.Model, r.Owner, r.Conversation, r.Tokens, r.Bytes, r.Created, r.Used})
	})
}
