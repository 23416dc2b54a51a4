package flowrules

// Counter is a metric that only grows.
type Counter interface{ Add(float64) }

// Counters returns the counter of a name and its labels, alternating names
// and values.
type Counters func(name, help string, labels ...string) Counter

// counts are the service's metrics; every label value is known beforehand.
type counts struct {
	writes     map[[2]string]Counter
	reconciles map[string]Counter
	repairs    map[string]Counter
	expiries   map[string]Counter
	restores   Counter
	rejections map[string]Counter
	readErrors Counter
	unstored   Counter
	unheard    Counter
	lapsed     Counter
}

func newCounts(counter Counters) *counts {
	c := &counts{
		writes: map[[2]string]Counter{}, reconciles: map[string]Counter{}, repairs: map[string]Counter{},
		expiries: map[string]Counter{}, rejections: map[string]Counter{},
	}
	for _, op := range []string{"add", "delete", "group", "meter", "delete_group", "delete_meter"} {
		for _, result := range []string{"confirmed", failedLate.String(), failedFull.String(), failedRefused.String()} {
			c.writes[[2]string{op, result}] = counter("writes", "Flow-mods, group-mods and meter-mods sent, by operation and what became of them.", "op", op, "result", result)
		}
	}
	for _, what := range []string{"kept", "added", "removed"} {
		c.reconciles[what] = counter("reconciled", "Entries compared with what a switch had when it connected, by what was done.", "outcome", what)
	}
	for _, what := range []string{"missing", "changed", "extra", "given_up"} {
		c.repairs[what] = counter("repaired", "Entries found changed behind our back while verifying, by what was wrong.", "fault", what)
	}
	for _, why := range []string{"idle_timeout", "hard_timeout", "idle_while_away", "idle_unheard"} {
		c.expiries[why] = counter("expired", "Entries that are no longer desired because their time was over.", "reason", why)
	}
	for _, why := range []string{"invalid", "held", "limit", "owner", "app_limit", "batch"} {
		c.rejections[why] = counter("rejected", "Entries that a request asked for in vain.", "reason", why)
	}
	c.restores = counter("restored", "Entries sent again because somebody else had deleted them.")
	c.readErrors = counter("read_errors", "Readings of a switch's entries that failed.")
	c.unstored = counter("store_errors", "Changes that could not be stored.")
	c.unheard = counter("announcements_shed", "Announcements of refused entries dropped because nobody took them.")
	c.lapsed = counter("directions_lapsed", "Switches whose packets go to the southbound again because who took them was silent.")
	return c
}

func (c *counts) countWrite(op, result string) { c.writes[[2]string{op, result}].Add(1) }
func (c *counts) countRepair(fault string)     { c.repairs[fault].Add(1) }
func (c *counts) countExpiry(reason string)    { c.expiries[reason].Add(1) }
func (c *counts) countRejection(reason string) { c.rejections[reason].Add(1) }
func (c *counts) countRestore()                { c.restores.Add(1) }

func (c *counts) countReconciled(kept, added, removed uint32) {
	c.reconciles["kept"].Add(float64(kept))
	c.reconciles["added"].Add(float64(added))
	c.reconciles["removed"].Add(float64(removed))
}
