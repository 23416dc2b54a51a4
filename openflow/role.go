package openflow

// Role is the role of a controller (OpenFlow 1.3.5 §7.3.9).
type Role uint32

// The roles.
const (
	RoleNoChange Role = 0
	RoleEqual    Role = 1
	RoleMaster   Role = 2
	RoleSlave    Role = 3
)

// String returns the name of the role.
func (r Role) String() string {
	switch r {
	case RoleNoChange:
		return "nochange"
	case RoleEqual:
		return "equal"
	case RoleMaster:
		return "master"
	case RoleSlave:
		return "slave"
	}
	return "unknown role"
}

// AppendRoleRequest appends a role request; generation counts only for master
// and slave.
func (v Version) AppendRoleRequest(dst []byte, xid uint32, r Role, generation uint64) ([]byte, error) {
	return v.appendRole(dst, TypeRoleRequest, xid, r, generation)
}

// AppendRoleReply appends a role reply.
func (v Version) AppendRoleReply(dst []byte, xid uint32, r Role, generation uint64) ([]byte, error) {
	return v.appendRole(dst, TypeRoleReply, xid, r, generation)
}

func (v Version) appendRole(dst []byte, t Type, xid uint32, r Role, generation uint64) ([]byte, error) {
	if v == V10 {
		return dst, unsupported(v, t.String(), "roles", badRequestType)
	}
	start := len(dst)
	dst = appendHeader(dst, v, uint8(t), xid)
	dst = be.AppendUint64(dst, uint64(r)<<32)
	dst = be.AppendUint64(dst, generation)
	return finish(dst, start, t)
}

// DecodeRoleRequest reads a role request.
func (v Version) DecodeRoleRequest(msg []byte) (r Role, generation uint64, err error) {
	return decodeRole(TypeRoleRequest, msg)
}

// DecodeRoleReply reads a role reply.
func (v Version) DecodeRoleReply(msg []byte) (r Role, generation uint64, err error) {
	return decodeRole(TypeRoleReply, msg)
}

func decodeRole(t Type, msg []byte) (Role, uint64, error) {
	if len(msg) < 24 {
		return 0, 0, malformed(t, len(msg), "cut short", badRequestLen)
	}
	return Role(be.Uint32(msg[8:])), be.Uint64(msg[16:]), nil
}
