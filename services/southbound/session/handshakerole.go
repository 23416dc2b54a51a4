package session

import (
	"errors"
	"fmt"

	"github.com/weft-sdn/weft/openflow"
)

// requestRole asks for a role and waits for the answer, during the handshake.
func (hs *handshake) requestRole(role openflow.Role, generation uint64) (openflow.Role, uint64, error) {
	xid := hs.xid.Add(1)
	msg, err := hs.Version.AppendRoleRequest(nil, xid, role, generation)
	if err == nil {
		err = hs.out.put(msg)
	}
	if err == nil {
		msg, err = hs.reply(xid, openflow.TypeRoleReply, "role reply")
	}
	if err != nil {
		return 0, 0, err
	}
	return hs.Version.DecodeRoleReply(msg)
}

// takeRole becomes master under this run's epoch, or slave while another
// process is master. It uses a switch without roles as it is.
func (hs *handshake) takeRole() error {
	epoch, master := hs.shared.owner.IsOwner(hs.DPID)
	if !master {
		return hs.takeSlave(epoch)
	}
	role, _, err := hs.requestRole(openflow.RoleMaster, epoch)
	var refused *openflow.Error
	switch {
	case err == nil && role == openflow.RoleMaster:
		hs.role.role, hs.role.Mastered = role, true
		return nil
	case err == nil:
		return fmt.Errorf("switch %v answered the request for master with %v", hs.DPID, role)
	case errors.As(err, &refused) && staleRole(refused):
		_, theirs, _ := hs.requestRole(openflow.RoleNoChange, 0)
		if hs.shared.owner.HandleHigherGeneration(theirs) {
			return hs.takeSlave(theirs) // until the epoch is higher
		}
		return hs.role.laterMaster(theirs)
	case errors.As(err, &refused):
		hs.role.role, hs.role.Mastered = openflow.RoleEqual, true
		hs.shared.Log.Info("switch has no roles, used as it is", "dpid", hs.DPID, "error", refused)
		return nil
	}
	return err
}

// takeSlave becomes slave. If the switch knows a higher generation than this
// process, takeSlave asks for it and uses that. It keeps a switch without roles
// as it is.
func (hs *handshake) takeSlave(generation uint64) error {
	role, _, err := hs.requestRole(openflow.RoleSlave, generation)
	var refused *openflow.Error
	if errors.As(err, &refused) && staleRole(refused) {
		if _, generation, err = hs.requestRole(openflow.RoleNoChange, 0); err == nil {
			role, _, err = hs.requestRole(openflow.RoleSlave, generation)
		}
	}
	switch {
	case errors.As(err, &refused) && !staleRole(refused):
		hs.role.role = openflow.RoleEqual
		return nil
	case err != nil:
		return err
	}
	hs.role.role = role
	return nil
}
