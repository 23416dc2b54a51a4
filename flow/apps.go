package flow

// Apps are not part of Weft, and there are many of them: the entries and groups
// of an app's decisions carry a mark derived from its name.

// AppMark identifies an app.
type AppMark uint16

// MarkOf returns the mark of an app (FNV-1a of 32 bits, folded).
func MarkOf(app string) AppMark {
	h := uint32(2166136261)
	for i := range len(app) {
		h = (h ^ uint32(app[i])) * 16777619
	}
	return AppMark(h>>16) ^ AppMark(h)
}

// appCookies begins the cookies of the entries of apps' decisions.
const appCookies = 0x4150 // "AP"

// AppCookie returns the cookie of an app's entry. The lower half of its number is
// the app's own.
func AppCookie(app AppMark, own Cookie) Cookie {
	return appCookies<<48 | Cookie(app)<<32 | own&0xffffffff
}

// App returns the mark of the cookie's app; false if it is not an app's.
func (c Cookie) App() (AppMark, bool) {
	return AppMark(c >> 32), c>>48 == appCookies
}

// AppGroupMax is the largest number that an app gives a group.
const AppGroupMax = 1<<16 - 1

// AppGroup returns the group number on switches of an app's group id.
func AppGroup(app AppMark, id uint32) uint32 {
	return AppGroups | uint32(app&0xfff)<<16 | id&AppGroupMax
}
