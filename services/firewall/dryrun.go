package firewall

import (
	"errors"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// The effects of requests.
const (
	effectAdded     = "added"
	effectReplaced  = "replaced"
	effectUnchanged = "unchanged"
	effectDeleted   = "deleted"
	effectAbsent    = "absent"
)

// effectsListed bounds the rules that the answer to a request for all of them
// lists.
const effectsListed = 1000

// writable refuses a dry run of a change, in the words of the change, if the
// store takes none.
func (b *store) writable(words string) error {
	if damage := b.damage(); damage != "" {
		return api.Errorf(codes.Unavailable, words, errors.New("it is read-only: "+damage+"; run weft store repair"))
	}
	return nil
}

// tellRemoval says what deleting the rules of a request does to each of them.
// The caller has the turn.
func (b *store) tellRemoval(req *api.DeleteFirewallRulesRequest, gone map[uint32]*rule, resp *api.DeleteFirewallRulesResponse) {
	seen := make(map[string]bool, len(req.Ids))
	tell := func(id, effect string) {
		if !seen[id] {
			seen[id] = true
			resp.Ids, resp.Effects = append(resp.Ids, id), append(resp.Effects, effect)
		}
	}
	for _, id := range req.Ids {
		effect := effectAbsent
		if b.rules[id] != nil {
			effect = effectDeleted
		}
		tell(id, effect)
	}
	if req.AllOf == "" {
		return
	}
	var more []string
	for _, r := range gone {
		more = append(more, r.id)
	}
	slices.Sort(more)
	for _, id := range more[:min(len(more), effectsListed)] {
		tell(id, effectDeleted)
	}
}
