package firewall

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestCVE_2021_38363_RulesThatCoincide: of rules that come to the same entries,
// each can go without the others' going with it, however it is written; when the
// last has gone, nothing is left; and what is asked for again changes nothing.
// (In ONOS, intents that came to the same entries deleted each other's, differed
// by upper case, and stayed after they had been purged: also CVE-2021-38364,
// CVE-2022-24109, -29604, -29607 and -29609.)
func TestCVE_2021_38363_RulesThatCoincide(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(h)
		connect(h, 1, true)
		remove := func(ids ...string) {
			t.Helper()
			resp, err := wefttest.Call(h, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{Ids: ids})
			if err != nil || len(resp.Failures) > 0 {
				t.Fatalf("delete %q: %v, %v", ids, resp, err)
			}
		}
		add(t, h,
			deny("upper", 100, "eth_src=0A:BC:00:00:00:01"), deny("lower", 100, "eth_src=0a:bc:00:00:00:01"),
			deny("masked", 100, "eth_src=0a:bc:00:00:00:01/ff:ff:ff:ff:ff:ff"), deny("other", 100, "eth_src=0a:bc:00:00:00:02"))
		const entry, other = "10:100 eth_src=0a:bc:00:00:00:01 drop", "10:100 eth_src=0a:bc:00:00:00:02 drop"
		want := func(when string, list ...string) {
			t.Helper()
			slices.Sort(list)
			if got := p.entries(1); !slices.Equal(got, list) {
				t.Errorf("%s: entries %q, want %q", when, got, list)
			}
			denied := verdictOn(h, 1, tcp("10.0.0.1", "10.0.0.2", 80), flow.RoleEdge, 0)
			if denied != flow.Next {
				t.Errorf("%s: a packet that no rule is about: %v", when, denied)
			}
		}
		want("with all", entry, other)
		remove("upper")
		want("one of three gone", entry, other)
		remove("upper") // again
		remove("masked")
		want("two of three gone", entry, other)
		if again := add(t, h, deny("lower", 100, "eth_src=0A:bc:00:00:00:01")); again.Added != 0 {
			t.Errorf("the same in upper case: %v, want no rule more", again)
		}
		h.Restart()
		connect(h, 1, true)
		want("after a restart", entry, other)
		remove("lower")
		want("all three gone", other)
		remove("other")
		want("none left")
		if list, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{}); err != nil || list.Total != 0 {
			t.Errorf("%v, %v: want no rule", list, err)
		}
	})
}
