package flowrules

import "github.com/weft-sdn/weft/flow"

// tablesWithoutMiss returns the tables that packets reach and that have no miss entry yet.
func (l *ledger) tablesWithoutMiss() (without [256]bool) {
	for _, t := range flow.Tables() {
		miss := flow.Entry{Table: t.Number}
		r := l.rules[idOf(&miss)]
		there := r != nil && r.state == confirmed || l.unclaimed[flow.OwnerForwarding][idOf(&miss)] != nil
		without[t.Number] = miss.TableMiss() && !there
	}
	return without
}
