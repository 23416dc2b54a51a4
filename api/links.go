package api

// Usable reports whether a link carries traffic: probes have arrived in both
// directions.
func (l *Link) Usable() bool { return l.GetState() == "up" || l.GetState() == "dampened" }
