package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// operator owns the virtual IPs that commands make.
const operator = "operator"

// isOwned reports whether a virtual IP is a service's.
func isOwned(m proto.Message) bool {
	owner := m.(*api.Vip).Owner
	return owner != "" && owner != operator
}

// tidyVip completes a virtual IP and its members.
func tidyVip(o proto.Message) {
	m := o.(*api.Vip)
	if m.Owner = cmp.Or(m.Owner, operator); m.Shadow {
		m.Mac = "" // the host's
	}
	for _, p := range m.Pool {
		p.Port, p.Weight, p.State = cmp.Or(p.Port, m.Port), cmp.Or(p.Weight, 1), cmp.Or(p.State, "up")
	}
}

// readClients reads who may connect: addresses or prefixes, or none.
func readClients(to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	allow := to.Mutable(f).Message().Interface().(*api.Allow)
	if !slices.Equal(texts, []string{"none"}) {
		allow.Clients = texts
	}
	return nil
}

// readMembers reads members of a pool, or the one that a request names by its fields.
func readMembers(flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	if f.IsList() {
		return readEach(flag, to, f, texts, parseMember)
	}
	m, err := parseMember(texts[0])
	m.ProtoReflect().Range(func(g protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if g := to.Descriptor().Fields().ByName(g.Name()); g != nil {
			to.Set(g, v)
		}
		return true
	})
	return err
}

// parseMember reads ADDRESS, ADDRESS:PORT or [IPV6]:PORT, with @WEIGHT or
// @WEIGHT/PRIORITY.
func parseMember(text string) (*api.PoolMember, error) {
	where, weight, weighted := strings.Cut(text, "@")
	m := &api.PoolMember{}
	if weighted {
		weight, priority, tiered := strings.Cut(weight, "/")
		n, err := strconv.ParseUint(weight, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q: want a weight of 1 to 65535 behind @", text)
		}
		m.Weight = uint32(n)
		if tiered {
			if n, err = strconv.ParseUint(priority, 10, 16); err != nil {
				return nil, fmt.Errorf("%q: want a priority of 0 to 65535 behind /", text)
			}
			m.Priority = uint32(n)
		}
	}
	if a, err := netip.ParseAddr(strings.Trim(where, "[]")); err == nil {
		m.Address = a.String()
		return m, nil
	}
	p, err := netip.ParseAddrPort(where)
	if err != nil {
		return nil, fmt.Errorf("%q: want an address such as 10.0.0.1, 10.0.0.1:8080 or [fd00::1]:8080", text)
	}
	m.Address, m.Port = p.Addr().String(), uint32(p.Port())
	return m, nil
}

// failUnchanged fails if there was no member to delete.
func failUnchanged(_ *cli.Controller, request, answer proto.Message) (failed, err error) {
	if answer.(*api.Vip).Effect == "unchanged" {
		err = fmt.Errorf("virtual IP %s had no such member; weft balancer list %[1]s shows those that it has", request.(*api.DeleteMemberRequest).Vip)
	}
	return nil, err
}

// failUnknownVip fails if nothing is listed because there is no virtual IP of that name.
func failUnknownVip(c *cli.Controller, request, answer proto.Message) (failed, err error) {
	name, listed := "", 0
	switch m := answer.(type) {
	case *api.ListConnectionsResponse:
		name, listed = request.(*api.ListConnectionsRequest).Vip, len(m.Connections)
	case *api.ListPairsResponse:
		name, listed = request.(*api.ListPairsRequest).Vip, len(m.Pairs)
	}
	if name == "" || listed > 0 {
		return nil, nil
	}
	all, err := c.ListVips(c.Ctx, &api.ListVipsRequest{Name: name})
	if err == nil {
		err = kindsOf(api.File_balancer_proto.Services().ByName("Balancer"))[0].choose(all, name)
	}
	return nil, err
}

func writePairs(t *cli.Table, _, answer proto.Message) {
	writeAnswer(t, answer.ProtoReflect())
	for _, sw := range answer.(*api.ListPairsResponse).Incomplete {
		fmt.Fprintf(t, "\nswitch %s did not answer: the counts of its entries are missing\n", sw)
	}
}
