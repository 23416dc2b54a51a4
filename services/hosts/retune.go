package hosts

// live lists the configuration keys that a running table adopts: bounds, times,
// and bindings. Addresses that no host may have are not among them, because
// hosts that have one would have to be removed.
func live() []string {
	return []string{
		"port_limit", "address_limit", "limit", "age", "verify", "penalty", "hold", "probation", "port_grace", "switch_grace",
		"moves", "move_window", "quarantine", "bindings", "ports", "router_ports", "guard", "neighbour_entries",
	}
}

// retune adopts the keys of live. Hosts beyond a lower bound stay until they
// age; those that contradict a binding go at once. Work that is due earlier by
// the new times is done at once.
func (t *table) retune(now int64, c *Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.cfg
	own.PortLimit, own.AddressLimit, own.Limit = c.PortLimit, c.AddressLimit, c.Limit
	own.Age, own.Verify, own.Penalty = c.Age, c.Verify, c.Penalty
	own.Hold, own.Probation = c.Hold, c.Probation
	own.PortGrace, own.SwitchGrace = c.PortGrace, c.SwitchGrace
	own.Moves, own.MoveWindow, own.Quarantine = c.Moves, c.MoveWindow, c.Quarantine
	own.Bindings, own.Ports, own.RouterPorts = c.Bindings, c.Ports, c.RouterPorts
	own.Guard, own.NeighbourEntries = c.Guard, c.NeighbourEntries
	t.configure(now)
	t.claims.due.moveUp(0)
	for _, one := range t.places.leaving { // which stay in order
		one.due = 0
	}
	t.places.evicting.moveUp(0)
	t.ageing.moveUp(0)
}
