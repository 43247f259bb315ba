# What .ci/run and .ci/full are made of; they source this file. A step runs even when an earlier one
# failed; the summary tells the seconds of each and the exit code is 1 when any failed.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONDONTWRITEBYTECODE PYTHONPATH VIRTUAL_ENV PYTEST_ADDOPTS
export UV_COMPILE_BYTECODE=1  # google.adk is large; several environments import it many times
export UV_PYTHON="${UV_PYTHON:-3.11}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
dist="$work/dist"
pins="$PWD/tools/constraints/hashes.txt"
summary="$work/summary"
touch "$summary"

if ! command -v uv >/dev/null; then
  python3 -m venv build/uv && build/uv/bin/pip install --quiet uv || python3 -m pip install --quiet uv
  PATH="$PWD/build/uv/bin:$PATH"
fi
for bin in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin; do
  PATH="$PATH:$bin"  # uv finds Pythons on PATH; what is nowhere it downloads
done

# Hashes must agree between Pythons: those asked for, else all supported ones that are here already.
if [[ -z ${ADK_FLUENT_PYTHONS:-} ]]; then
  here=()
  for version in 3.11 3.12 3.13 3.14; do
    if uv python find --no-project --no-python-downloads "$version" >/dev/null 2>&1; then
      here+=("$version")
    fi
  done
  ADK_FLUENT_PYTHONS="${here[*]}"
fi
export ADK_FLUENT_PYTHONS

# step TITLE COMMAND...: run it with errexit, whatever came before, and note how it went.
step() {
  local title=$1 start=$SECONDS status word=ok
  shift
  printf '\n=== %s\n' "$title"
  set +e
  (set -e; "$@")
  status=$?
  set -e
  ((status)) && word=FAILED
  printf '%-7s %4d s  %s\n' "$word" $((SECONDS - start)) "$title" >>"$summary"
}

# beside COMMAND: run its steps while others run; `joined` waits for them, and prints what they said.
beside() {
  "$1" >"$work/$1.log" 2>&1 &
  lanes+=("$1" "$!")
}

lanes=()
joined() {
  local lane
  for ((lane = 0; lane < ${#lanes[@]}; lane += 2)); do
    wait "${lanes[lane + 1]}" || printf '%-7s %6s  %s\n' FAILED "" "${lanes[lane]}" >>"$summary"
    cat "$work/${lanes[lane]}.log"
  done
  lanes=()
}

# finish: print the summary and what pytest counted, and exit.
finish() {
  printf '\n=== summary, %d s\n' "$SECONDS"
  cat "$summary"
  uv run --no-sync python - "$work"/junit/*.xml <<'PYTHON'
import sys
from xml.etree import ElementTree

suites = [suite for path in sys.argv[1:] for suite in ElementTree.parse(path).iter("testsuite")]
count = {
    key: sum(int(suite.get(key, 0)) for suite in suites)
    for key in ("tests", "failures", "errors", "skipped")
}
failed = count["failures"] + count["errors"]
skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
print(f"{count['tests'] - failed - count['skipped']} passed, {failed} failed{skipped}")
PYTHON
  ! grep -q '^FAILED' "$summary"
  exit
}

# pytest_in VENV NAME ARGS...: run tests there; the report is counted at the end.
pytest_in() {
  local venv=$1 name=$2
  shift 2
  "$venv/bin/pytest" -q -p no:cacheprovider --junitxml="$work/junit/$name.xml" "$@"
}

# fresh VENV PYTHON: an empty environment outside the workspace.
fresh() {
  uv venv --quiet --no-project --python "$2" "$1"
}

wheel() {
  echo "$dist/${1//-/_}"-*.whl
}

pins_agree() {
  uv run --no-sync python tools/lock.py --check
}

codegen_agrees() {
  uv run --no-sync python -m tools.codegen --check
}

lint() {
  uv run --no-sync ruff check .
  uv run --no-sync ruff format --check .
}

types() {
  uv run --no-sync pyright --project pyproject.toml
}

# The wheels as a user has them: outside the workspace, all in one place, and each beside core alone.
install_wheels() {
  fresh "$work/user" "$UV_PYTHON"
  uv pip install --quiet --no-config --python "$work/user" --constraints "$pins" \
    --group pyproject.toml:types "$dist"/*.whl
  cd "$work"
  user/bin/python -I -c 'import adk_fluent; print(adk_fluent.__file__)' | tee imported
  grep -q "^$work/user/" imported
  user/bin/adk-fluent --version
}

public_types() {
  source "$work/user/bin/activate"
  cd "$work"
  pyright --verifytypes adk_fluent --ignoreexternal
}

# What typing_tests/ promise about user code, and the examples, checked as strict user code.
user_types() {
  source "$work/user/bin/activate"
  mkdir "$work/code"
  local folder name
  for folder in packages/*/typing_tests packages/*/examples; do
    [[ -d $folder ]] || continue
    name=${folder#packages/}
    mkdir -p "$work/code/${name%/*}"
    cp -r "$folder" "$work/code/$name"
  done
  cd "$work/code"
  cat >pyrightconfig.json <<'JSON'
{
  "typeCheckingMode": "strict",
  "enableTypeIgnoreComments": false,
  "reportUnnecessaryTypeIgnoreComment": "error"
}
JSON
  pyright --project .
  for folder in */typing_tests; do
    mypy --strict "$folder"
  done
}

# column NAME ARGS...: the wheels on one version of google-adk with a complete tested set; before 2.x
# without those that need it.
column() {
  local venv="$work/$1" wheels=("$dist"/*.whl)
  [[ $1 == adk-2x ]] || wheels=("${wheels[@]/#*\/adk_fluent_a2a-*/}")
  fresh "$venv" "$UV_PYTHON"
  uv pip sync --quiet --no-config --python "$venv" "tools/constraints/$1.txt"
  uv pip install --quiet --no-config --python "$venv" --no-deps ${wheels[@]}
  uv pip check --python "$venv"
  pytest_in "$venv" "$1" -m adk "${@:2}"
}

# version_of COLUMN: the version of google-adk in it, as a requirement.
version_of() {
  grep '^google-adk==' "tools/constraints/$1.txt"
}
