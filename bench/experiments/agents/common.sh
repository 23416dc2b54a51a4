# What the scripts of agents share: each is read by one of them, with the name
# of its program and how to install it, and sets dir, where its configuration
# goes: that of the lab, which removes it, if there is a lab.
set -eu
program=$1 install=$2
if ! command -v "$program" >/dev/null; then
	echo "$program is not installed: install it with: $install" >&2
	exit 127
fi
[ "${CHECK-}" = "" ] || exit 0
for address in "${LISTEN:?is not set: ADDRESS:PORT to listen at}" ${BACKENDS:?is not set: ADDRESS:PORT of each, with spaces between}; do
	good=
	case $address in
	*[!0-9A-Fa-f.:[\]]*) ;;
	\[*]:[0-9]*) good=yes ;;
	*:*:*) ;;
	?*:[0-9]*) good=yes ;;
	esac
	if [ -z "$good" ]; then
		echo "$address is not ADDRESS:PORT" >&2
		exit 2
	fi
done
dir=${WEFT_LAB_DIR:-${TMPDIR:-/tmp}}/agent-$program-${WEFT_LAB_HOST:-local}-${LISTEN##*:}
mkdir -p "$dir"

# bare prints the address of ADDRESS:PORT, without brackets.
bare() {
	address=${1%:*}
	address=${address#[}
	printf %s "${address%]}"
}
