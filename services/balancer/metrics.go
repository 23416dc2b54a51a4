package balancer

// totals are the current numbers of VIPs and members.
type totals struct{ connections, pairs, bindings, up, down, unknown, draining, away int }

func (b *balancer) totals() (f totals) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.connections, f.bindings = len(b.tracker.by), len(b.tracker.bindings)
	for _, v := range b.vips.List() {
		f.pairs += v.pairs
		for _, m := range v.pool {
			_, reached := b.net.reach(m)
			switch {
			case m.wish.drains():
				f.draining++
			case m.wish == rest || m.grade() == bad:
				f.down++
			case !reached:
				f.away++
			case m.grade() == good:
				f.up++
			default:
				f.unknown++
			}
		}
	}
	return f
}

// members returns the members, each by the name of its VIP and by its address.
func (b *balancer) members() map[[2]string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[[2]string]bool{}
	for _, v := range b.vips.List() {
		for _, m := range v.pool {
			all[[2]string{v.name, m.key().String()}] = true
		}
	}
	return all
}

// memberCounts returns a member's current connections, all its connections so
// far, and whether it may get more.
func (b *balancer) memberCounts(vip, address string) (connections, total float64, up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.vips.Get(vip)
	if v == nil {
		return 0, 0, false
	}
	for _, m := range v.pool {
		if m.key().String() == address {
			_, reached := b.net.reach(m)
			return float64(m.live), float64(m.total), m.serves() && reached
		}
	}
	return 0, 0, false
}
