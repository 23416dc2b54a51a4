package gateway

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// named returns the names of switches 1 to 4, of which 3 and 4 call themselves the same.
func named(t *testing.T) *switchNames {
	t.Helper()
	bucket, err := wefttest.NewStore().Bucket(t.Context(), "gateway.names")
	if err != nil {
		t.Fatal(err)
	}
	n := newSwitchNames(bucket)
	for dpid, is := range map[string]string{"1": "s1", "2": "hybrid name=pe2 access=3", "3": "twin", "4": "twin", "5": "None", "6": "beef", "7": "two words"} {
		n.heard(&api.SwitchChanged{Switch: &api.Switch{Dpid: strings.Repeat("0", 15) + dpid, Description: is, Connected: true}})
	}
	return n
}

func (n *switchNames) text(t *testing.T) string {
	t.Helper()
	list, err := n.list(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, x := range list.Names {
		part := x.Dpid[15:] + " " + x.Name
		if x.Given {
			part += " given"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// TestSwitchNames: switches have the names by which they alone call themselves, and those that
// operators give, which no two share and which no number is.
func TestSwitchNames(t *testing.T) {
	n := named(t)
	is := func(want string) {
		t.Helper()
		if got := n.text(t); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is("1 s1, 2 pe2")
	give := func(dpid, name string, want codes.Code) {
		t.Helper()
		if _, err := n.name(t.Context(), &api.NameSwitchRequest{Dpid: dpid, Name: name}); api.KindOf(err) != want {
			t.Errorf("switch %s, name %s: %v, want %v", dpid, name, err, want)
		}
	}
	give("3", "left", codes.OK)
	give("3", "left", codes.OK)
	give("4", "left", codes.AlreadyExists)
	give("4", "s1", codes.AlreadyExists)
	give("4", "cafe", codes.InvalidArgument)
	give("4", "a b", codes.InvalidArgument)
	give("x", "right", codes.InvalidArgument)
	is("1 s1, 2 pe2, 3 left given")
	give("3", "middle", codes.OK)
	give("1", "core", codes.OK)
	is("1 core given, 2 pe2, 3 middle given")
	other := newSwitchNames(n.bucket) // another gateway
	if err := n.bucket.All(t.Context(), func(name string, value []byte, revision uint64) error {
		other.changed(name, value, revision)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := other.text(t); got != "1 core given, 3 middle given" {
		t.Errorf("of the store: %s", got)
	}
	give("1", "", codes.OK)
	give("3", "", codes.OK)
	is("1 s1, 2 pe2")
	n.heard(&api.SwitchChanged{Switch: &api.Switch{Dpid: strings.Repeat("0", 15) + "1"}}) // away
	is("1 s1, 2 pe2")
	n.forgotten(&api.SwitchForgotten{Dpid: strings.Repeat("0", 15) + "4"})
	is("1 s1, 2 pe2, 3 twin")
	n.heard(&api.SwitchChanged{Switch: &api.Switch{Dpid: strings.Repeat("0", 15) + "1", Connected: true}})
	is("2 pe2, 3 twin")
}

// TestNamesInRequests: a request has names wherever it has datapath identifiers; what is neither
// is left to the service.
func TestNamesInRequests(t *testing.T) {
	n := named(t)
	if _, err := n.name(t.Context(), &api.NameSwitchRequest{Dpid: "7", Name: "attic"}); err != nil {
		t.Fatal(err)
	}
	n.heard(&api.SwitchChanged{Switch: &api.Switch{Dpid: strings.Repeat("0", 15) + "7", Description: "s7", Connected: true}})
	one, two := strings.Repeat("0", 15)+"1", strings.Repeat("0", 15)+"2"
	for _, c := range []struct{ req, want proto.Message }{
		{&api.ReadFlowsRequest{Dpid: "s1"}, &api.ReadFlowsRequest{Dpid: one}},
		{&api.ReadFlowsRequest{Dpid: "1"}, &api.ReadFlowsRequest{Dpid: "1"}},
		{&api.ReadFlowsRequest{Dpid: "no name"}, &api.ReadFlowsRequest{Dpid: "no name"}},
		{&api.FindPathRequest{Src: "s1", Dst: "pe2"}, &api.FindPathRequest{Src: one, Dst: two}},
		{&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "s1", Ends: []string{"s1:3.100", "pe2:4/1-3", "7:1", "s1"}, Pin: []string{"pe2"}}}},
			&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "s1", Ends: []string{one + ":3.100", two + ":4/1-3", "7:1", "s1"}, Pin: []string{two}}}}},
	} {
		if err := n.resolve(c.req.ProtoReflect()); err != nil || !proto.Equal(c.req, c.want) {
			t.Errorf("%v, %v; want %v", c.req, err, c.want)
		}
	}
	for _, c := range []struct{ dpid, why string }{{"s9", "none has this name"}, {"twin", "2 call themselves so"}, {"s7", "given the name attic"}} {
		if err := n.resolve((&api.ReadFlowsRequest{Dpid: c.dpid}).ProtoReflect()); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.dpid, err, c.why)
		}
	}
}
