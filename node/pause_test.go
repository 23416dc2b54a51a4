package node

import (
	"fmt"
	"testing"
	"time"
)

// TestPauseIsNotBelieved: that all sessions go down at once, with their links up, is a pause
// of Open vSwitch; one of several, all with their links, or the only one is not.
func TestPauseIsNotBelieved(t *testing.T) {
	row := func(name, state, link string) string {
		return fmt.Sprintf(`"row-%[1]s":{"new":{"name":"%[1]s","link_state":"%[3]s","bfd":["map",[["enable","true"]]],"bfd_status":["map",[["state","%[2]s"],["flap_count","2"]]]}}`, name, state, link)
	}
	for _, c := range []struct {
		name   string
		before []string   // interfaces with a session that is up
		after  [][]string // updates
		doubt  bool       // of e1
	}{
		{"a pause", []string{"e1", "e2", "e3"}, [][]string{{row("e1", "down", "up"), row("e2", "down", "up"), row("e3", "init", "up")}}, true},
		{"a pause in two updates", []string{"e1", "e2"}, [][]string{{row("e1", "down", "up")}, {row("e2", "down", "up")}}, true},
		{"a pause, with one that was down", []string{"e1", "e2"}, [][]string{{row("e3", "down", "up")}, {row("e1", "down", "up"), row("e2", "down", "up")}}, true},
		{"on the way up again", []string{"e1", "e2"}, [][]string{{row("e1", "down", "up"), row("e2", "down", "up")}, {row("e1", "init", "up")}}, true},
		{"a silent cut", []string{"e1", "e2"}, [][]string{{row("e1", "down", "up")}}, false},
		{"a cut", []string{"e1", "e2"}, [][]string{{row("e1", "down", "down"), row("e2", "down", "down")}}, false},
		{"the only one", []string{"e1"}, [][]string{{row("e1", "down", "up")}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &database{changed: func() {}}
			say := func(first bool, rows ...string) {
				text := ""
				for i, r := range rows {
					if i > 0 {
						text += ","
					}
					text += r
				}
				if err := d.update([]byte(`{"Interface":{`+text+`}}`), first); err != nil {
					t.Fatal(err)
				}
			}
			var rows []string
			for _, name := range c.before {
				rows = append(rows, row(name, "up", "up"))
			}
			say(true, rows...)
			for _, rows := range c.after {
				say(false, rows...)
			}
			if i, _ := d.iface("e1"); (i.bfdStatus["state"] == bfdUp) != c.doubt || i.bfdStatus["flap_count"] != "2" {
				t.Errorf("e1 is %v; doubt: %v", i.bfdStatus, c.doubt)
			}
			if i := d.pauses.believe(d.ifaces["row-e1"], time.Now().Add(doubtTime)); i.bfdStatus["state"] == bfdUp {
				t.Error("it is never believed")
			}
		})
	}
}
