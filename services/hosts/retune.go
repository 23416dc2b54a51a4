package hosts

// live are the keys of the configuration that a running table takes over: bounds
// and times. Addresses that no host may have are not among them, for hosts that
// have one would have to go.
func live() []string {
	return []string{
		"port_limit", "address_limit", "limit", "age", "verify", "penalty", "port_grace", "switch_grace",
		"moves", "move_window", "quarantine",
	}
}

// retune takes over the keys of live. Hosts that are beyond a lower bound stay
// until they age; what is due earlier by the new times is seen to at once.
func (t *table) retune(c *Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.cfg
	own.PortLimit, own.AddressLimit, own.Limit = c.PortLimit, c.AddressLimit, c.Limit
	own.Age, own.Verify, own.Penalty = c.Age, c.Verify, c.Penalty
	own.PortGrace, own.SwitchGrace = c.PortGrace, c.SwitchGrace
	own.Moves, own.MoveWindow, own.Quarantine = c.Moves, c.MoveWindow, c.Quarantine
	t.judging.at(0)
	t.evicting.at(0)
	t.ageing.at(0)
}
