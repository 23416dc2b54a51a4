package flowrules

import (
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// roomOfApps checks the requests of apps: an app replaces no entry of the
// operator or of another app, and has no more than most entries afterwards (0:
// no bound). The operator may replace all.
func (o *operatorEntries) roomOfApps(targets []target, most int) error {
	added := map[string]int{}
	for i := range targets {
		t := &targets[i]
		w := o.known(t.sw)
		if t.app == "" {
			continue
		}
		if w == nil {
			added[t.app]++
			continue
		}
		if err := o.checkOwners(w, t); err != nil {
			return err
		}
		w.mu.Lock()
		if w.ledger.operatorRule(idOf(&t.entry)) == nil {
			added[t.app]++
		}
		w.mu.Unlock()
	}
	if most == 0 {
		return nil
	}
	for app, n := range added {
		if has := o.appFlows(app); has+n > most {
			o.count.countRejection("app_limit")
			return api.Errorf(codes.ResourceExhausted, "%d more entries: app %s has %d, and the plan gives it %d; delete some, or raise apps.%s.entries", n, app, has, most, app)
		}
	}
	return nil
}

// checkOwners returns an error if an app's entry would replace another owner's.
func (o *operatorEntries) checkOwners(w *worker, t *target) error {
	if t.app == "" {
		return nil
	}
	w.mu.Lock()
	old := w.ledger.operatorRule(idOf(&t.entry))
	w.mu.Unlock()
	if old == nil || old.app == t.app {
		return nil
	}
	o.count.countRejection("owner")
	whose := "the operator"
	if old.app != "" {
		whose = "app " + old.app
	}
	return api.Errorf(codes.PermissionDenied, "flow entry for switch %v, table %d, priority %d: %s has one with this match; app %s writes its own only", t.sw, t.entry.Table, t.entry.Priority, whose, t.app)
}

// appFlows counts the entries of an app.
func (o *operatorEntries) appFlows(app string) (n int) {
	workers, _ := o.all("")
	for _, w := range workers {
		w.mu.Lock()
		for _, rule := range w.ledger.hidden {
			if rule.app == app {
				n++
			}
		}
		for _, rule := range w.ledger.rules {
			if rule.app == app {
				n++
			}
		}
		w.mu.Unlock()
	}
	return n
}
