import { checkAgents } from "./agents.ts";
import { checkArguments } from "./arguments.ts";
import type { Check } from "./check.ts";
import { checkConditions } from "./conditions.ts";
import { checkCredentials } from "./credentials.ts";
import { checkEnvironment } from "./environment.ts";
import { checkExpectations } from "./expectations.ts";
import { checkKeyFit } from "./key-fit.ts";
import { checkModels } from "./models.ts";
import { checkLimits } from "./limits.ts";
import { checkPermissions } from "./permissions.ts";
import { checkReferences } from "./references.ts";
import { checkScripts } from "./scripts.ts";
import { checkSize } from "./size.ts";
import { checkStepEnv } from "./step-env.ts";
import { checkSubAgents } from "./sub-agents.ts";
import { checkSkills } from "./skills.ts";
import { checkTeams } from "./teams.ts";
import { checkTeamLevels } from "./team-levels.ts";
import { checkToolSteps } from "./tool-steps.ts";

/** Every semantic rule; adding one is a file and a line here. */
export const checks: readonly Check[] = [
  checkSize,
  checkKeyFit,
  checkLimits,
  checkReferences,
  checkConditions,
  checkArguments,
  checkToolSteps,
  checkScripts,
  checkEnvironment,
  checkStepEnv,
  checkCredentials,
  checkAgents,
  checkSubAgents,
  checkTeams,
  checkTeamLevels,
  checkModels,
  checkPermissions,
  checkSkills,
  checkExpectations,
];
