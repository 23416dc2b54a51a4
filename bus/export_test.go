package bus

// AskedSyncing reports whether the servers have been asked whether they sync.
func (s *Store) AskedSyncing() bool { return s.unsynced.Load() != nil }
